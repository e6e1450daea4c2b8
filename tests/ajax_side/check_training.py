"""The agent resolves to the protocol's configuration and schedule."""

import unittest
from unittest import mock

from ajax_side import training
from shared.configuration import ajax_resolved, widths
from shared.errors import UserError
from shared.protocol import FIRST_UPDATE_ROW, ROUNDS, updates

FULL = training.Plan(seeds=(0, 1, 2), rows=20_000, every=2_000, episodes=10, tiny=False)
TINY = training.Plan(seeds=(0, 1), rows=1_600, every=400, episodes=2, tiny=True)


class Configuration(unittest.TestCase):
    def test_both_sizes_resolve_to_the_protocol(self) -> None:
        for plan in (FULL, TINY):
            described = training.describe(training.build_agent(plan), plan)
            resolved = {**described["dreamer_config"], **described["agent_config"]}
            expected = ajax_resolved(tiny=plan.tiny)
            self.assertEqual({name: resolved[name] for name in expected}, expected)
            self.assertEqual(
                widths(tiny=plan.tiny).items() & resolved.items(), widths(tiny=plan.tiny).items()
            )

    def test_schedule_is_the_protocols_in_every_round(self) -> None:
        agent = training.build_agent(TINY)
        for each in ROUNDS.values():
            plan = training.Plan(each.seeds, each.rows, each.every, each.episodes, tiny=True)
            described = training.describe(agent, plan)
            self.assertEqual(described["schedule"]["first_update_step"], FIRST_UPDATE_ROW)
            self.assertEqual(described["schedule"]["total_updates"], updates(each.rows))
            self.assertEqual(described["ring_rows"], each.rows // 16)
        for rows in range(16, 2_000, 16):
            self.assertEqual(agent.schedule.total_updates(rows // 16), updates(rows))

    def test_another_resolution_is_refused(self) -> None:
        other = ajax_resolved(tiny=True) | {"lam": 0.5}
        with (
            mock.patch.object(training, "ajax_resolved", return_value=other),
            self.assertRaisesRegex(UserError, "resolves lam to 0.95, the protocol says 0.5"),
        ):
            training.build_agent(TINY)
