"""Checks the documentation: links and anchors lead somewhere, Python parses, every page can be reached, none is stale.

Says nothing about whether what a page claims is true; examples are run elsewhere.
"""

import re
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

import attrs

from docs import generate

INDEX = Path("docs", "index.md")
TOP_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")

_FENCE = re.compile(r"^(?P<indent>\s*)(?P<marks>`{3,}|~{3,})\s*(?P<language>[\w+-]*)")
_HEADING = re.compile(r"^#{1,6}\s+(?P<title>.+?)\s*#*$")
_ANCHOR = re.compile(r"<a\s+(?:id|name)=[\"'](?P<name>[^\"']+)[\"']")
_CODE = re.compile(r"(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)")
_INLINE_LINK = re.compile(r"\]\(\s*<?(?P<target>[^)\s>]+)>?(?:\s+[\"'][^)]*)?\)")
_LINK_DEFINITION = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?(?P<target>[^\s>]+)>?")
_ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)


@attrs.frozen(kw_only=True)
class Line:
    """One line of a page, with its number."""

    number: int
    text: str


@attrs.frozen(kw_only=True)
class Fence:
    """One fenced block of a page: the line it opens on, its language, and what it holds."""

    number: int
    language: str
    body: str
    is_closed: bool


@attrs.frozen(kw_only=True)
class Page:
    """A Markdown file, split into prose and fenced blocks."""

    path: Path
    prose: list[Line]
    fences: list[Fence]


@attrs.frozen(kw_only=True)
class Link:
    """A link to a file of the repository, an anchor, or both."""

    number: int
    target: str


@attrs.frozen(kw_only=True, order=True)
class Problem:
    """Something wrong on a page, printed as `file:line: message`."""

    path: Path
    number: int
    message: str

    def __str__(self) -> str:
        return f"{self.path.as_posix()}:{self.number}: {self.message}"


def main(root: Path) -> int:
    """Print every problem of the documentation at `root`; return 1 when there is one."""
    found = problems(root)
    for problem in found:
        print(problem)
    if not found:
        print(f"Documentation: {len(_paths(root))} pages, nothing wrong.")
    return 1 if found else 0


def problems(root: Path) -> list[Problem]:
    """Return everything wrong with the documentation at `root`, by file and line."""
    pages = {path: read_page(root, path) for path in _paths(root)}
    found = [
        *(problem for page in pages.values() for problem in _broken_links(root, page, pages)),
        *(problem for page in pages.values() for problem in _broken_fences(page)),
        *_unreachable(pages),
        *_stale(root),
    ]
    return sorted(found)


def read_page(root: Path, path: Path) -> Page:
    """Read the page at `path`, relative to `root`."""
    prose: list[Line] = []
    fences: list[Fence] = []
    lines = enumerate((root / path).read_text(encoding="utf-8").splitlines(), start=1)
    for number, text in lines:
        if opening := _FENCE.match(text):
            fences.append(_read_fence(number, opening, lines))
        else:
            prose.append(Line(number=number, text=text))
    return Page(path=path, prose=prose, fences=fences)


def _read_fence(number: int, opening: re.Match[str], lines: Iterator[tuple[int, str]]) -> Fence:
    marks = opening["marks"]
    body: list[str] = []
    is_closed = False
    for _, text in lines:
        rest = text.strip()
        if rest.startswith(marks) and not rest.strip(marks[0]):
            is_closed = True
            break
        body.append(text)
    source = textwrap.dedent("\n".join(body)) + "\n"
    return Fence(number=number, language=opening["language"].lower(), body=source, is_closed=is_closed)


def _paths(root: Path) -> list[Path]:
    top = [Path(name) for name in TOP_PAGES if (root / name).is_file()]
    return top + sorted(path.relative_to(root) for path in (root / "docs").rglob("*.md"))


def _broken_links(root: Path, page: Page, pages: dict[Path, Page]) -> Iterator[Problem]:
    for link in links(page):
        message = _why_broken(root, page, link, pages)
        if message:
            yield Problem(path=page.path, number=link.number, message=message)


def links(page: Page) -> Iterator[Link]:
    """Yield the links of a page that stay inside the repository."""
    for line in page.prose:
        text = _CODE.sub("", line.text)
        for found in (*_INLINE_LINK.finditer(text), *_LINK_DEFINITION.finditer(text)):
            if not _ELSEWHERE.match(found["target"]):
                yield Link(number=line.number, target=unquote(found["target"]))


def _why_broken(root: Path, page: Page, link: Link, pages: dict[Path, Page]) -> str | None:
    target = _target(page, link)
    if target is None:
        return f"link '{link.target}' leads out of the repository"
    if not (root / target).exists():
        return f"link '{link.target}' leads to a file that does not exist"
    anchor = link.target.partition("#")[2]
    if anchor and target.suffix == ".md":
        there = pages.get(target) or read_page(root, target)
        if anchor not in anchors(there):
            return f"link '{link.target}' leads to an anchor that '{target.as_posix()}' does not have"
    return None


def _target(page: Page, link: Link) -> Path | None:
    """Return the file a link leads to, relative to the root; None when that is outside."""
    name = link.target.partition("#")[0]
    if not name:
        return page.path
    parts: list[str] = []
    for part in (page.path.parent / name).parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            return None
    target = Path(*parts)
    return None if target.is_absolute() else target


def anchors(page: Page) -> set[str]:
    """Return what a link may put after `#`: the headings as GitHub spells them, and every `<a id>`."""
    found: set[str] = set()
    for line in page.prose:
        found.update(match["name"] for match in _ANCHOR.finditer(line.text))
        if heading := _HEADING.match(line.text):
            found.add(_unused(slug(heading["title"]), found))
    return found


def slug(title: str) -> str:
    """Return the anchor of a heading: `Where *links* lead (1)` becomes `where-links-lead-1`."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", title)
    return re.sub(r"[^\w\- ]", "", text.lower().replace("*", "")).replace(" ", "-")


def _unused(name: str, taken: set[str]) -> str:
    number, candidate = 0, name
    while candidate in taken:
        number += 1
        candidate = f"{name}-{number}"
    return candidate


def _broken_fences(page: Page) -> Iterator[Problem]:
    for fence in page.fences:
        if not fence.is_closed:
            yield Problem(path=page.path, number=fence.number, message="this fenced block is never closed")
        elif fence.language in ("python", "py"):
            yield from _broken_python(page.path, fence)


def _broken_python(path: Path, fence: Fence) -> Iterator[Problem]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compile(fence.body, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as exc:
        number = fence.number + (getattr(exc, "lineno", None) or 0)
        reason = getattr(exc, "msg", exc)
        yield Problem(path=path, number=number, message=f"this Python does not parse: {reason}")


def _unreachable(pages: dict[Path, Page]) -> Iterator[Problem]:
    if INDEX not in pages:
        yield Problem(path=INDEX, number=1, message="this page must exist: the others are reached from it")
        return
    for path in sorted(set(_in_docs(pages)) - _reachable(pages)):
        yield Problem(path=path, number=1, message=f"no way of links leads here from '{INDEX.as_posix()}'")


def _in_docs(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if path.parts[0] == "docs"]


def _reachable(pages: dict[Path, Page]) -> set[Path]:
    seen: set[Path] = set()
    waiting = [INDEX]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        targets = (_target(pages[path], link) for link in links(pages[path]))
        waiting.extend(target for target in targets if target is not None and target in pages)
    return seen


def _stale(root: Path) -> Iterator[Problem]:
    if not (root / "docs" / "generate.py").is_file():
        return
    for path, difference in generate.stale(root):
        changed = re.search(r"^@@ -(\d+)", difference, re.MULTILINE)
        message = f"this page is not what the code says now; run `{generate.COMMAND}`\n{difference}"
        yield Problem(path=path, number=int(changed[1]) if changed else 1, message=message)


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
