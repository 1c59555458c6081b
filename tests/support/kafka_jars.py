"""What a local Apache Kafka is started from: a Java, and Kafka's jars in the cache folder.

Knows nothing of brokers. The jars come through Maven, once, and are shared by all checkouts.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

KAFKA_VERSION = "4.4.0"
SCALA_VERSION = "2.13"
LOG4J_VERSION = "2.25.5"  # the log4j-core that Kafka's own jars bring
JAVA_WANTED = 17  # Kafka 4's broker is compiled for it

_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>kafka-jars</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_{scala}</artifactId>
      <version>{kafka}</version>
    </dependency>
    <dependency>
      <!-- Kafka's distribution adds it; without it the broker logs nothing at all. -->
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>{log4j}</version>
    </dependency>
  </dependencies>
</project>
"""


class ToolMissing(Exception):
    """A program that is needed is not there or too old. The text says what to install."""


class JarsUnavailable(Exception):
    """Maven could not fetch Kafka's jars. The text holds the end of what it said."""


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where this project caches: $SEMIF_CACHE, else semif-kafka in the XDG cache folder."""
    given = environ.get("SEMIF_CACHE")
    if given:
        return Path(given)
    xdg = environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache") / "semif-kafka"


def java_major(version_output: str) -> int | None:
    """The major version in what `java -version` prints; None where there is none.

    Before 9 Java called itself 1.8: that is 8.
    """
    found = re.search(r'version "(\d+)(?:\.(\d+))?', version_output)
    if found is None:
        return None
    major = int(found[1])
    return int(found[2]) if major == 1 and found[2] else major


def find_java(environ: Mapping[str, str] = os.environ) -> str:
    """The path of a Java new enough: JAVA_HOME's where that is set, else the one on PATH.

    Raises ToolMissing.
    """
    home = environ.get("JAVA_HOME")
    install = (
        f"Install Java {JAVA_WANTED} or newer"
        f" (Debian: apt-get install openjdk-{JAVA_WANTED}-jre-headless)"
    )
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java", path=_path(environ))
    if java is None or not os.access(java, os.X_OK):
        where = "JAVA_HOME has no bin/java" if home else "there is no java on PATH"
        raise ToolMissing(f"A local Kafka needs Java, and {where}. {install}.")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    major = java_major(answer.stderr + answer.stdout)
    if answer.returncode != 0 or major is None:
        raise ToolMissing(f"A local Kafka needs Java, and `{java} -version` fails. {install}.")
    if major < JAVA_WANTED:
        which = "JAVA_HOME's" if home else "the one on PATH"
        raise ToolMissing(f"A local Kafka needs a newer Java: {which} is Java {major}. {install}.")
    return java


def find_maven(environ: Mapping[str, str] = os.environ) -> str:
    """The path of Maven. Raises ToolMissing."""
    maven = shutil.which("mvn", path=_path(environ))
    if maven is None:
        raise ToolMissing(
            "Fetching a local Kafka needs Maven, and there is no mvn on PATH."
            " Install it (Debian: apt-get install maven)."
        )
    return maven


def cached(cache: Path | None = None) -> Path | None:
    """The folder of jars if they have been fetched before, else None."""
    folder = (cache or cache_folder()) / f"kafka-{KAFKA_VERSION}"
    return folder if folder.is_dir() else None


def fetch(cache: Path | None = None) -> Path:
    """The folder of jars, fetched now where it is not there yet.

    The folder appears by rename, so it is complete or absent; a lock lets one process fetch
    while others wait for it. Raises ToolMissing without Maven, JarsUnavailable where it fails.
    """
    cache = cache or cache_folder()
    ready = cached(cache)
    if ready is not None:
        return ready
    maven = find_maven()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "kafka-jars.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready = cached(cache)
        if ready is not None:
            return ready
        with tempfile.TemporaryDirectory(dir=cache, prefix="kafka-fetch-") as work:
            jars = Path(work) / "jars"
            _copy_dependencies(maven, Path(work), jars)
            target = cache / f"kafka-{KAFKA_VERSION}"
            jars.rename(target)
            return target


def _copy_dependencies(maven: str, work: Path, jars: Path) -> None:
    pom = work / "pom.xml"
    pom.write_text(
        _POM.format(scala=SCALA_VERSION, kafka=KAFKA_VERSION, log4j=LOG4J_VERSION), "utf-8"
    )
    answer = subprocess.run(
        [
            maven,
            "-q",
            "-B",
            "-f",
            str(pom),
            "dependency:copy-dependencies",
            f"-DoutputDirectory={jars}",
            "-DincludeScope=runtime",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if answer.returncode != 0 or not any(jars.glob(f"kafka_{SCALA_VERSION}-*.jar")):
        tail = "\n".join(answer.stdout.splitlines()[-15:])
        raise JarsUnavailable(
            f"Maven could not fetch Kafka {KAFKA_VERSION} (exit {answer.returncode}):\n{tail}"
        )


def _path(environ: Mapping[str, str]) -> str:
    return environ.get("PATH", os.defpath)
