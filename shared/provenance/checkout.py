"""Is a checkout, file by file, what its pinned commit holds?

``git status`` cannot answer that: it believes the index (``assume-unchanged``, ``skip-worktree``),
leaves ignored files out and applies line-ending filters. So every file is hashed here as git hashes
a blob and compared with the commit's tree, and commit and trees are hashed too, so that an object
store with forged objects is refused. Nothing is written, and no code of the checkout is run.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.errors import UserError
from shared.provenance.git import look

_REGULAR_MODES = frozenset({b"100644", b"100755", b"100664"})
_TREE_MODE = b"40000"
#: Files named in one message; the rest is counted.
_NAMED = 5


@dataclass(frozen=True)
class Checkout:
    """A checkout whose files were found to be exactly those of ``commit``."""

    root: Path
    commit: str


def verify_checkout(root: Path, commit: str) -> Checkout:
    """Compare every file below ``root`` with the tree of ``commit``.

    ``commit`` is a full SHA-1 id. Raises ``UserError`` with one line that names what differs: a
    changed, missing or additional file (ignored ones too), a symbolic link, another commit checked
    out, an object that does not hash to its id, or a directory that is no git checkout.
    """
    root = root.resolve()
    if not root.is_dir():
        raise UserError(f"{root}: no such directory; expected a checkout of commit {commit[:7]}")
    git_dir = root / ".git"
    if not git_dir.exists():
        raise UserError(f"{root}: is not a git checkout (no .git); clone commit {commit[:7]} there")
    head = _git(git_dir, "rev-parse", "--verify", "HEAD").decode().strip()
    if head != commit:
        raise UserError(
            f"{root}: commit {head[:12]} is checked out, expected {commit[:12]}; "
            f"run git -C {root} checkout {commit}, or use another checkout"
        )
    expected = committed_files(git_dir, commit)
    try:
        differences = sorted(_differences(root, expected))
    except OSError as error:
        raise UserError(f"{error.filename or root}: cannot be read ({error.strerror})") from None
    if differences:
        named = "; ".join(differences[:_NAMED])
        more = f"; and {len(differences) - _NAMED} more" if len(differences) > _NAMED else ""
        raise UserError(
            f"{root}: is not what commit {commit[:12]} holds: {named}{more}; "
            "restore it or use a fresh clone"
        )
    return Checkout(root, commit)


# --- what the commit holds ------------------------------------------------------------------


def committed_files(git_dir: Path, commit: str) -> dict[str, str]:
    """Path -> blob id of every file of ``commit``, read from the object store ``git_dir``.

    Raises ``UserError`` where an object is missing, does not hash to its id, or is neither a
    directory nor a regular file (a symbolic link, a submodule).
    """
    content = _read_objects(git_dir, [commit], "commit")[commit]
    header, _, tree = content.split(b"\n", 1)[0].partition(b" ")
    if header != b"tree":
        raise UserError(f"{git_dir}: commit {commit} names no tree; use a fresh clone")
    files: dict[str, str] = {}
    level = {"": tree.decode()}
    while level:
        trees = _read_objects(git_dir, sorted(set(level.values())), "tree")
        below: dict[str, str] = {}
        for prefix, tree_id in level.items():
            for mode, name, object_id in _tree_entries(trees[tree_id]):
                path = prefix + name
                if mode == _TREE_MODE:
                    below[f"{path}/"] = object_id
                elif mode in _REGULAR_MODES:
                    files[path] = object_id
                else:
                    raise UserError(f"{git_dir}: {path} of commit {commit[:12]} is no regular file")
        level = below
    return files


def _tree_entries(content: bytes) -> Iterator[tuple[bytes, str, str]]:
    """``(mode, name, object id)`` of each entry of a git tree object."""
    position = 0
    while position < len(content):
        end = content.index(b"\0", position)
        mode, _, name = content[position:end].partition(b" ")
        position = end + 21  # the NUL, then a binary SHA-1
        yield mode, os.fsdecode(name), content[end + 1 : position].hex()


def _read_objects(git_dir: Path, ids: Sequence[str], kind: str) -> dict[str, bytes]:
    """Content of objects of one kind, each hashed against its id."""
    output = _git(git_dir, "cat-file", "--batch", stdin="".join(f"{each}\n" for each in ids))
    objects: dict[str, bytes] = {}
    for object_id in ids:
        header, _, output = output.partition(b"\n")
        fields = header.split()
        if len(fields) != 3:
            raise UserError(f"{git_dir}: holds no {kind} {object_id}; use a fresh clone")
        size = int(fields[2])
        content, output = output[:size], output[size + 1 :]
        if fields[1] != kind.encode() or object_hash(kind, content) != object_id:
            raise UserError(
                f"{git_dir}: {kind} {object_id} does not hash to its id; use a fresh clone"
            )
        objects[object_id] = content
    return objects


def object_hash(kind: str, content: bytes) -> str:
    """Git's SHA-1 id of an object (``blob``, ``tree``, ``commit``) with this content."""
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(content)) + content).hexdigest()


# --- what the directory holds ---------------------------------------------------------------


def _differences(root: Path, expected: Mapping[str, str]) -> Iterator[str]:
    """One phrase for each file of ``root`` that is not as ``expected`` says."""
    seen = set()
    for path, mode in _walk(root):
        seen.add(path)
        if stat.S_ISLNK(mode):
            yield f"{_shown(path)} is a symbolic link"
        elif path not in expected:
            yield f"{_shown(path)} is not in the commit"
        elif not stat.S_ISREG(mode):
            yield f"{_shown(path)} is no regular file"
        else:
            content = (root / path).read_bytes()
            if object_hash("blob", content) != expected[path]:
                unix = content.replace(b"\r\n", b"\n")
                endings = object_hash("blob", unix) == expected[path]
                yield f"{_shown(path)} has changed{' (line endings only)' if endings else ''}"
    yield from (f"{_shown(path)} is missing" for path in expected if path not in seen)


def _walk(root: Path, prefix: str = "") -> Iterator[tuple[str, int]]:
    """``(relative path, mode)`` of everything below ``root`` but directories and git's own data.

    Symbolic links are reported, never followed: a linked directory could be exchanged later.
    """
    with os.scandir(root / prefix) as entries:
        for entry in entries:
            path = prefix + entry.name
            if path == ".git":
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(root, f"{path}/")
            else:
                yield path, entry.stat(follow_symlinks=False).st_mode


def _shown(path: str) -> str:
    return path if path.isprintable() else ascii(path)


# --- git ------------------------------------------------------------------------------------


def _git(git_dir: Path, *arguments: str, stdin: str = "") -> bytes:
    """Output of a git command that only reads ``git_dir``."""
    # Naming the directory keeps git from looking for a repository further up.
    done = look(
        ["-c", f"safe.directory={git_dir.parent}", f"--git-dir={git_dir}", *arguments],
        stdin=stdin.encode(),
    )
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        last = reason[-1] if reason else f"exit status {done.returncode}"
        raise UserError(f"{git_dir.parent}: git {arguments[0]} failed ({last}); use a fresh clone")
    return done.stdout
