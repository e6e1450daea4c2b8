"""Compiled programs from the cache, in the reference's jax and with its own update."""

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

import dreamerv3

from tests.compiling import CacheChecks, run_with_cache
from tests.inside import slow

CHECKOUT = Path(dreamerv3.__file__).resolve().parent.parent

#: Three updates of the real agent on batches that depend on nothing but their number. The run
#: itself draws its batches' seeds in a thread: no two runs are alike.
UPDATES = """
import json, sys, time
from pathlib import Path
began = time.monotonic()
from ref_side.imports import import_reference
from shared.provenance.checkout import Checkout
out = Path(sys.argv[1]).resolve()
import_reference(Checkout(Path(sys.argv[2]), ""))
import dreamerv3, jax, numpy as np
from ref_side.environment import CartPoleEnv
from ref_side.session import resolve
from shared.configuration import reference_overrides
config = resolve(reference_overrides(seed=0, rows=1600, logdir=str(out.parent), tiny=True))
env = dreamerv3.wrap_env(CartPoleEnv(np.random.default_rng(0)), config)
agent = dreamerv3.Agent(env.obs_space, env.act_space, config)
compiled = time.monotonic() - began
draws, rows = np.random.default_rng(1), (config.batch_size, config.batch_length)
carry, found = agent.init_train(config.batch_size), []
for number in range(4):
    batch = agent._dummy_batch(agent.spaces, rows)
    for name, values in batch.items():
        if values.dtype == np.float32:
            batch[name] = draws.normal(size=values.shape).astype(np.float32)
    batch["is_first"][:, 0] = True
    seed = agent._next_seeds(agent.train_sharded)
    data = {**jax.device_put(batch, agent.train_sharded), "seed": seed}
    _, carry, metrics = agent.train(data, carry)
    found.append({name: np.asarray(value).tolist() for name, value in metrics.items()})
out.write_text(json.dumps({"seconds": compiled, "updates": found}))
"""


class Cache(CacheChecks, unittest.TestCase):
    side = "reference"

    @slow
    def test_first_updates_are_the_same_with_and_without_it(self) -> None:
        found: dict[str, dict[str, Any]] = {}
        with tempfile.TemporaryDirectory() as folder:
            for kind in ("without", "cold", "warm"):
                file = Path(folder) / f"{kind}.json"
                where = None if kind == "without" else Path(folder) / "cache"
                run_with_cache(UPDATES, "reference", where, str(file), str(CHECKOUT))
                found[kind] = json.loads(file.read_text())
        seconds = {kind: each["seconds"] for kind, each in found.items()}
        print(f"seconds to build and compile: {seconds}")
        self.assertLess(seconds["warm"], seconds["cold"] / 2)
        first, *updates = found["without"]["updates"]
        self.assertEqual(first, {}, "metrics come one update late")
        for update in updates:
            self.assertGreater(len(update), 100)
            self.assertNotEqual(update["opt_grad_norm"], 0.0)
        # As text, so that NaN equals NaN.
        self.assertEqual(
            json.dumps(found["cold"]["updates"]), json.dumps(found["without"]["updates"])
        )
        self.assertEqual(
            json.dumps(found["warm"]["updates"]), json.dumps(found["without"]["updates"])
        )
