"""Turns what a plugin did wrong into words that outlive its code. Keeps no exception and no frame."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

from opencode_core.errors import OpencodeError, Place, PluginError, PluginHookError, PluginImportError
from opencode_core.model.plugin import Diagnostic, Severity

_KERNEL = os.path.join(Path(__file__).resolve().parents[1], "")


def diagnose(error: BaseException, *, plugin: str, scope: str = "host", severity: Severity = "error") -> Diagnostic:
    """Describes an error of a plugin."""
    problem, remedy = words(error)
    place = error.place if isinstance(error, OpencodeError) and error.place else place_of(error)
    return Diagnostic(
        plugin=plugin,
        problem=problem,
        remedy=remedy,
        severity=severity,
        scope=scope,
        hook=error.hook if isinstance(error, PluginError) else None,
        file=place.file if place else None,
        line=place.line if place else None,
        traceback="".join(traceback.format_exception(error)),
    )


def hook_error(plugin: str, hook: str, error: BaseException) -> PluginError:
    """Says that a hook raised, keeping the words of an error that already says what to do."""
    if isinstance(error, PluginError) and (error.plugin, error.hook) == (plugin, hook):
        return error
    problem, remedy = words(error)
    return PluginHookError(
        sentence(f"The hook '{hook}' of the plugin '{plugin}' raised: {problem}"),
        remedy or "Fix the hook, or block the plugin.",
        plugin=plugin,
        hook=hook,
        place=place_of(error),
    )


def import_error(plugin: str, error: BaseException, *, file: str = "") -> PluginImportError:
    """Says that a plugin's code could not be imported, and where it went wrong."""
    place = place_of(error, prefer=file)
    problem, remedy = words(error)
    if isinstance(error, SyntaxError):
        problem = f"SyntaxError: {error.msg}"
    return PluginImportError(
        sentence(f"The plugin '{plugin}' could not be imported: {problem}"),
        remedy or _import_remedy(error),
        plugin=plugin,
        place=place,
    )


def place_of(error: BaseException, *, prefer: str = "") -> Place | None:
    """Returns the innermost file and line outside the kernel: where the plugin's author has to look."""
    if isinstance(error, SyntaxError) and error.filename and not error.filename.startswith("<"):
        return Place(error.filename, error.lineno)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)]
    for frame in reversed(frames):
        if frame.filename == prefer:
            return Place(frame.filename, frame.lineno)
    return Place(frames[-1].filename, frames[-1].lineno) if frames else None


def words(error: BaseException) -> tuple[str, str]:
    """Returns what an error says happened, and what it says to do about it, if anything."""
    if isinstance(error, OpencodeError):
        return error.problem, error.remedy
    try:
        text = str(error)
    except Exception:  # it is the plugin's own class, and may be wrong too
        text = ""
    return (f"{type(error).__name__}: {text}" if text else f"{type(error).__name__}."), ""


def sentence(text: str) -> str:
    """Ends a text that somebody else wrote as a sentence, so that the next one can follow it."""
    return text if text.rstrip().endswith((".", "!", "?", ":")) else f"{text.rstrip()}."


def _is_machinery(filename: str) -> bool:
    """Whether a frame is nobody's file: the kernel's, Python's import system's, or code that a library generated."""
    return filename.startswith((_KERNEL, "<"))


def _import_remedy(error: BaseException) -> str:
    if isinstance(error, ImportError) and (error.name or "").split(".")[0] in ("plugin_sdk", "opencode_core"):
        return "It may need a newer kernel: run 'pip install --upgrade opencode-core'."
    if isinstance(error, ModuleNotFoundError):
        return f"Install what provides '{error.name}', or block the plugin."
    return "Fix the file, or block the plugin."
