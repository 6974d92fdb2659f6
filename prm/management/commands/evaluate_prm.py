"""Evaluate a PRM on files in ProcessBench's format: a project's version, or a backend without a project."""

import json
import math
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from jobs.failures import JobFailed
from prm import file_evaluation
from prm.backends.base import ScoringBackend
from prm.backends.remote import PROMPT_STYLES, HttpBackend, VllmBackend
from prm.file_evaluation import NotEvaluable
from prm.management.secret_file import read_secret
from prm.models import PRM
from prm.selection.hazards import Semantics


class Command(BaseCommand):
    help = "Evaluate a PRM on ProcessBench files: F1, AUCs (length-matched and length only), ECE, contamination."

    requires_system_checks = ()  # needs no database without --project

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--processbench", nargs="+", type=Path, required=True, metavar="FILE")
        parser.add_argument("--project", help="evaluate a PRM of this project, and save the figures on its page")
        parser.add_argument(
            "--prm",
            type=int,
            metavar="VERSION",
            help="PRM version to evaluate with --project (default: the current one)",
        )
        parser.add_argument("--train", nargs="+", type=Path, metavar="FILE", help="the PRM's training traces")
        parser.add_argument("--backend", choices=("builtin", "vllm", "http"), default="builtin")
        parser.add_argument("--address", help="URL of the vllm or http backend")
        parser.add_argument("--model", default="", help="model name as its server knows it")
        parser.add_argument(
            "--style", choices=sorted(PROMPT_STYLES), default="qwen", help="prompt style of a vllm backend"
        )
        parser.add_argument("--semantics", choices=[each.value for each in Semantics], default="hazard")
        parser.add_argument("--secret-file", type=Path, help="bearer token (vllm) or signing secret (http)")
        parser.add_argument(
            "--threshold",
            type=_parse_probability,
            help="lowest P(wrong) at which a step counts as wrong; only for vllm and http (default 0.5)",
        )
        parser.add_argument(
            "--strict", action="store_true", help="fail if the training files contain an evaluated problem"
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        from prm import benchmark_evaluation  # scikit-learn takes a second to load: not for --help

        try:
            result = _evaluate_of_project(options) if options["project"] else _evaluate(options)
        except (benchmark_evaluation.BenchmarkUnreadable, JobFailed, NotEvaluable, ValueError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(result, indent=2) if options["json"] else _format_table(result))


def _evaluate_of_project(options: dict[str, Any]) -> dict[str, Any]:
    if options["train"] or options["backend"] != "builtin" or options["threshold"] is not None or options["strict"]:
        raise CommandError("--project evaluates a registered PRM: leave out --train, --backend, --threshold, --strict.")
    wanted = {"is_current": True} if options["prm"] is None else {"version": options["prm"]}
    prm = PRM.objects.filter(project__slug=options["project"], **wanted).select_related("project").first()
    if prm is None:
        raise CommandError(f"There is no such PRM in a project {options['project']!r}.")
    *_progress, figures = file_evaluation.evaluate_on_files(prm, options["processbench"])
    assert isinstance(figures, dict)
    file_evaluation.save_evaluation(
        prm=prm, paths=options["processbench"], figures=figures, by=None, now=timezone.now()
    )
    return figures


def _evaluate(options: dict[str, Any]) -> dict[str, Any]:
    from prm import benchmark_evaluation

    judged = benchmark_evaluation.read_benchmark(options["processbench"])
    training = benchmark_evaluation.read_benchmark(options["train"]) if options["train"] else None
    if options["backend"] == "builtin" and options["threshold"] is not None:
        raise CommandError(
            "--threshold is only for vllm and http: the built-in PRM finds its own on traces outside the evaluation."
        )
    overlap = benchmark_evaluation.count_training_overlap(training, judged) if training else 0
    if options["strict"] and overlap:
        raise CommandError(
            f"{overlap} of the evaluated problems are in the training files, so nothing was evaluated (--strict)."
        )
    if options["backend"] != "builtin":
        return benchmark_evaluation.evaluate_backend(
            backend=_build_backend(options),
            semantics=options["semantics"],
            judged=judged,
            training=training,
            threshold=0.5 if options["threshold"] is None else options["threshold"],
        )
    if training is None:
        return benchmark_evaluation.evaluate_builtin_across_folds(judged=judged)
    return benchmark_evaluation.evaluate_builtin(judged=judged, training=training)


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
    return "\n".join([*lines, f"{'problems in training':30} {_format_overlap(result)}"])


def _format_overlap(result: dict[str, Any]) -> str:
    n = result["problems_in_training"]
    return "not stated" if n is None else str(n)


def _format_value(value: float | None) -> str:
    return "    -" if value is None else f"{value:.3f}"


def _format_interval(ends: list[float] | None) -> str:
    return "" if ends is None else f"[{ends[0]:.3f}, {ends[1]:.3f}]"
