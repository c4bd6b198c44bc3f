"""The six corpora: which packages they come from, which files are taken, where copies are kept."""

import gzip
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from clew.text.unicode import digest

PACKAGE_FILES = Path("/usr/share")  # where Debian packages install documentation
PAGES = 150  # files of a corpus, gold ones and others
LARGEST_OTHER = 60_000  # bytes of a file without a question, so that a build takes minutes
OTHER_BYTES = 1_200_000  # bytes of all files without a question


@dataclass(frozen=True)
class Corpus:
    """Packages, and patterns of the files in them, relative to where packages are installed."""

    name: str
    about: str
    packages: tuple[str, ...]
    patterns: tuple[str, ...]
    component: str = "main"

    @property
    def install(self) -> str:
        """The command that installs the packages."""
        names = " ".join(self.packages)
        source = "" if self.component == "main" else f"  # component {self.component}"
        return f"apt-get install --no-install-recommends {names}{source}"


CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus(
            "manual",
            "the PostgreSQL 15 manual, HTML",
            ("postgresql-doc-15",),
            ("doc/postgresql-doc-15/html/*.html",),
        ),
        Corpus(
            "rfc",
            "internet standards, plain text in pages",
            ("doc-rfc-std",),
            ("doc/RFC/standard/rfc*.txt.gz", "doc/RFC/draft-standard/rfc*.txt.gz"),
            component="non-free",
        ),
        Corpus(
            "pdf",
            "three PDF manuals: R data import and export, Network UPS Tools, Debian installation",
            ("r-doc-pdf", "nut-doc", "installation-guide-amd64"),
            (
                "doc/r-doc-pdf/manual/R-data.pdf",
                "doc/nut-doc/pdf/user-manual.pdf",
                "doc/installation-guide-amd64/en/install.en.pdf.gz",
            ),
        ),
        Corpus(
            "tables",
            "ISO codes in JSON, releases in CSV, time zones in tab-separated lines",
            ("iso-codes", "distro-info-data", "tzdata"),
            (
                "iso-codes/json/iso_3166-1.json",
                "iso-codes/json/iso_3166-3.json",
                "iso-codes/json/iso_4217.json",
                "iso-codes/json/iso_15924.json",
                "iso-codes/json/iso_639-5.json",
                "distro-info/debian.csv",
                "distro-info/ubuntu.csv",
                "zoneinfo/zone1970.tab",
            ),
        ),
        Corpus(
            "handbook",
            "two Debian handbooks in Chinese, HTML",
            ("debian-reference-zh-cn", "maint-guide-zh-cn"),
            ("debian-reference/ch*.zh-cn.html", "doc/maint-guide-zh-cn/html/*.html"),
        ),
        Corpus(
            "code",
            "documentation of Git and Python, HTML",
            ("git-doc", "python3.11-doc"),
            (
                "doc/git/html/git*.html",
                "doc/python3.11/html/faq/*.html",
                "doc/python3.11/html/howto/*.html",
                "doc/python3.11/html/library/*.html",
                "doc/python3.11/html/tutorial/*.html",
                "doc/python3.11/html/using/*.html",
            ),
        ),
    )
}


def select_files(
    corpus: Corpus, gold: Iterable[str], root: Path = PACKAGE_FILES, pages: int = PAGES
) -> list[str]:
    """Choose the gold files and other small ones in a fixed random order, up to `pages`."""
    wanted = sorted(set(gold))
    missing = [name for name in wanted if not (root / name).is_file()]
    found = {str(path.relative_to(root)) for one in corpus.patterns for path in root.glob(one)}
    if missing or not found:
        raise SystemExit(f"{corpus.name}: run `{corpus.install}` ({missing[0]} is missing)")
    chosen, size = list(wanted), 0
    for name in sorted(found - set(wanted), key=digest):
        bytes_here = len(read_unpacked(root / name))
        if len(chosen) >= pages or size >= OTHER_BYTES:
            break
        if bytes_here <= LARGEST_OTHER:
            chosen.append(name)
            size += bytes_here
    return sorted(chosen)


def read_unpacked(file: Path) -> bytes:
    """Read a file, unpacked if it is packed."""
    content = file.read_bytes()
    return gzip.decompress(content) if file.suffix == ".gz" else content


def copy_files(names: Sequence[str], folder: Path, root: Path = PACKAGE_FILES) -> bool:
    """Copy the files, unpacked; return False if the folder held exactly these already."""
    wanted = {name.removesuffix(".gz"): name for name in names}
    held = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    if held == set(wanted):
        return False
    if folder.exists():
        shutil.rmtree(folder)
    for name, source in wanted.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(read_unpacked(root / source))
    return True
