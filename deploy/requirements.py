"""Prints the requirements of this project, without its version: one a line, for pip's `-r`.

    python3 requirements.py pyproject.toml [extra …]

A version bump leaves the output as it is, so that an image layer made from it is reused.
"""

import sys
import tomllib


def main(path: str, *extras: str) -> None:
    with open(path, "rb") as file:
        project = tomllib.load(file)["project"]
    wanted = ["setuptools", *project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    print(*wanted, sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
