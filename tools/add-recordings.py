"""Copies recordings into tests/fixtures: add-recordings.py CAPTURES AGENT/VERSION [NAME-PATTERN ...]

Large files are stored compressed. What a recording is for stands in tests/recordings/expect/AGENT.toml.
"""

import gzip
import shutil
import sys
from fnmatch import fnmatchcase
from pathlib import Path

PACK_OVER = 16_000


def main() -> None:
    captures, folder, *patterns = sys.argv[1:]
    source = Path(captures) / folder
    target = Path(__file__).parent.parent / "tests" / "fixtures" / folder
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        stem = path.name.split(".")[0]
        if patterns and not any(fnmatchcase(stem, p) for p in patterns):
            continue
        if path.stat().st_size > PACK_OVER and not path.name.endswith(".meta.json"):
            packed = gzip.compress(path.read_bytes(), 9, mtime=0)
            (target / f"{path.name}.gz").write_bytes(packed)
        else:
            shutil.copyfile(path, target / path.name)
    total = sum(p.stat().st_size for p in target.iterdir())
    print(f"{target}: {len(list(target.iterdir()))} files, {total:,} bytes")


if __name__ == "__main__":
    main()
