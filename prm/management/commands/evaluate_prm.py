"""How good is a PRM on files of ProcessBench's form? Figures with intervals, as a table or as JSON."""

import json
import math
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from prm import benchmark_files
from prm.backends.base import BackendError, ScoringBackend
from prm.backends.http import HttpBackend
from prm.backends.vllm import PROMPT_STYLES, VllmBackend
from prm.benchmark_files import BenchmarkSet, BenchmarkUnreadable
from prm.management.secret_file import read_secret
from prm.selection.semantics import Semantics


class Command(BaseCommand):
    help = "Judge a PRM on ProcessBench files: F1, AUCs (length-matched beside length alone), ECE, contamination."

    requires_system_checks = ()  # reads files and no database

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--processbench", nargs="+", type=Path, required=True, metavar="FILE")
        parser.add_argument("--train", nargs="+", type=Path, metavar="FILE", help="what the PRM was or is trained on")
        parser.add_argument("--backend", choices=("builtin", "vllm", "http"), default="builtin")
        parser.add_argument("--address", help="where a vllm or http backend answers")
        parser.add_argument("--model", default="", help="the name under which it knows the model")
        parser.add_argument("--style", choices=sorted(PROMPT_STYLES), default="qwen", help="of a vllm backend")
        parser.add_argument("--semantics", choices=[each.value for each in Semantics], default="hazard")
        parser.add_argument("--secret-file", type=Path, help="bearer token (vllm) or signing secret (http)")
        parser.add_argument(
            "--threshold", type=_probability, help="P(wrong) that counts as wrong; builtin finds its own"
        )
        parser.add_argument("--strict", action="store_true", help="refuse where training holds a judged problem")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            judged = benchmark_files.read_benchmark(options["processbench"])
            training = benchmark_files.read_benchmark(options["train"]) if options["train"] else None
            told = self._told(judged, training, options)
        except (BenchmarkUnreadable, BackendError, ValueError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(json.dumps(told, indent=2) if options["json"] else _table(told))

    def _told(self, judged: BenchmarkSet, training: BenchmarkSet | None, options: dict[str, Any]) -> dict[str, Any]:
        from prm import benchmark_evaluation  # scikit-learn takes a second to load: not for --help

        if options["backend"] == "builtin" and options["threshold"] is not None:
            raise CommandError(
                "--threshold is for vllm and http: the builtin PRM's comes from traces it is not judged on."
            )
        known = benchmark_evaluation.count_training_overlap(training, judged) if training else 0
        if options["strict"] and known:
            raise CommandError(
                f"{known} of the judged problems are in the training files. Nothing was judged (--strict)."
            )
        if options["backend"] != "builtin":
            backend, means = _backend(options), Semantics(options["semantics"])
            verdict = benchmark_evaluation.evaluate_backend(
                backend=backend, means=means, judged=judged, training=training, threshold=_threshold(options)
            )
        elif training is None:
            verdict = benchmark_evaluation.evaluate_builtin_across_folds(judged=judged)
        else:
            verdict = benchmark_evaluation.evaluate_builtin(judged=judged, training=training)
        return verdict.as_dict()


def _probability(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise ArgumentTypeError("is no number from 0 to 1")
    return found


def _threshold(options: dict[str, Any]) -> float:
    return 0.5 if options["threshold"] is None else options["threshold"]


def _backend(options: dict[str, Any]) -> ScoringBackend:
    if not options["address"]:
        raise CommandError(f"--backend {options['backend']} needs --address")
    secret = read_secret(options["secret_file"])
    if options["backend"] == "vllm":
        return VllmBackend(options["address"], options["model"], style=options["style"], token=secret)
    if not secret:
        raise CommandError("--backend http needs --secret-file: its requests are signed")
    return HttpBackend(options["address"], options["model"], secret)


def _table(told: dict[str, Any]) -> str:
    lines = [f"{name:30} {_figure(told[name])}  {_interval(told['intervals'][name])}" for name in told["intervals"]]
    lines += [f"{name:30} {value}" for name, value in told["counts"].items()]
    return "\n".join([*lines, f"{'problems in training':30} {told['problems_in_training']}"])


def _figure(value: float | None) -> str:
    return "    -" if value is None else f"{value:.3f}"


def _interval(ends: list[float] | None) -> str:
    return "" if ends is None else f"[{ends[0]:.3f}, {ends[1]:.3f}]"
