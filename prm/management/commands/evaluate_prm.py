"""Evaluate a PRM on files in ProcessBench's format."""

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
    help = "Evaluate a PRM on ProcessBench files: F1, AUCs (length-matched and length only), ECE, contamination."

    requires_system_checks = ()  # needs no database

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--processbench", nargs="+", type=Path, required=True, metavar="FILE")
        parser.add_argument("--train", nargs="+", type=Path, metavar="FILE", help="the PRM's training traces")
        parser.add_argument("--backend", choices=("builtin", "vllm", "http"), default="builtin")
        parser.add_argument("--address", help="where a vllm or http backend answers")
        parser.add_argument("--model", default="", help="the name that its server knows")
        parser.add_argument(
            "--style", choices=sorted(PROMPT_STYLES), default="qwen", help="prompt style of a vllm backend"
        )
        parser.add_argument("--semantics", choices=[each.value for each in Semantics], default="hazard")
        parser.add_argument("--secret-file", type=Path, help="bearer token (vllm) or signing secret (http)")
        parser.add_argument(
            "--threshold",
            type=_parse_probability,
            help="P(wrong) from which a step counts as wrong; only for vllm and http (default 0.5)",
        )
        parser.add_argument(
            "--strict", action="store_true", help="fail if the training files hold an evaluated problem"
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            judged = benchmark_files.read_benchmark(options["processbench"])
            training = benchmark_files.read_benchmark(options["train"]) if options["train"] else None
            result = self._evaluate(judged, training, options)
        except (BenchmarkUnreadable, BackendError, ValueError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(result, indent=2) if options["json"] else _format_table(result))

    def _evaluate(self, judged: BenchmarkSet, training: BenchmarkSet | None, options: dict[str, Any]) -> dict[str, Any]:
        from prm import benchmark_evaluation  # scikit-learn takes a second to load: not for --help

        if options["backend"] == "builtin" and options["threshold"] is not None:
            raise CommandError(
                "--threshold is only for vllm and http: the builtin PRM finds its own on traces outside the evaluation."
            )
        overlap = benchmark_evaluation.count_training_overlap(training, judged) if training else 0
        if options["strict"] and overlap:
            raise CommandError(
                f"{overlap} of the evaluated problems are in the training files, so nothing was evaluated (--strict)."
            )
        if options["backend"] != "builtin":
            result = benchmark_evaluation.evaluate_backend(
                backend=_build_backend(options),
                meaning=Semantics(options["semantics"]),
                judged=judged,
                training=training,
                threshold=0.5 if options["threshold"] is None else options["threshold"],
            )
        elif training is None:
            result = benchmark_evaluation.evaluate_builtin_across_folds(judged=judged)
        else:
            result = benchmark_evaluation.evaluate_builtin(judged=judged, training=training)
        return result.as_dict()


def _parse_probability(text: str) -> float:
    try:
        probability = float(text)
    except ValueError:
        probability = math.nan
    if not 0 <= probability <= 1:
        raise ArgumentTypeError("must be a number from 0 to 1")
    return probability


def _build_backend(options: dict[str, Any]) -> ScoringBackend:
    if not options["address"]:
        raise CommandError(f"--backend {options['backend']} needs --address.")
    secret = read_secret(options["secret_file"])
    if options["backend"] == "vllm":
        return VllmBackend(options["address"], options["model"], style=options["style"], token=secret)
    if not secret:
        raise CommandError("--backend http needs --secret-file, because its requests are signed.")
    return HttpBackend(options["address"], options["model"], secret)


def _format_table(result: dict[str, Any]) -> str:
    intervals = result["intervals"]
    lines = [f"{name:30} {_format_value(result[name])}  {_format_interval(intervals[name])}" for name in intervals]
    lines += [f"{name:30} {value}" for name, value in result["counts"].items()]
    return "\n".join([*lines, f"{'problems in training':30} {result['problems_in_training']}"])


def _format_value(value: float | None) -> str:
    return "    -" if value is None else f"{value:.3f}"


def _format_interval(ends: list[float] | None) -> str:
    return "" if ends is None else f"[{ends[0]:.3f}, {ends[1]:.3f}]"
