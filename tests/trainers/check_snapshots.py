"""Check that trainers can use a snapshot: `datasets.load_dataset` reads every format, TRL's PRM trainer trains a tiny
model for two steps, and the fields that axolotl needs exist. This runs in a separate environment, without Django:

    python tests/trainers/check_snapshots.py FOLDER …
"""

import json
import sys
from pathlib import Path
from typing import Any

# The fields and types that axolotl's `type: stepwise_supervised` needs.
AXOLOTL = {"prompt": str, "completions": list, "labels": list}


def main(folders: list[str]) -> None:
    for folder in map(Path, folders):
        read_all(folder)
    trained_on = next(folder for folder in folders if Path(folder).name == "jsonl")
    rows = load_format(Path(trained_on), "trl")
    check_fields(rows)
    train_two_steps(rows)
    print("trained 2 steps")


def load_format(folder: Path, name: str) -> Any:
    import datasets

    datasets.disable_progress_bars()
    return datasets.load_dataset(str(folder), name, cache_dir=str(folder / ".cache"))


def read_all(folder: Path) -> None:
    """Read every format by its config, with the features of the card, and compare the number of rows."""
    described = json.loads((folder / "manifest.json").read_text())
    expected: dict[str, int] = {}
    for file in described["files"]:
        if not file["format"].endswith(".weights"):
            expected[file["format"]] = expected.get(file["format"], 0) + file["rows"]
    for name, rows in expected.items():
        n_rows = sum(len(split) for split in load_format(folder, name).values())
        assert n_rows == rows, f"{name}: read {n_rows} of {rows} rows"
        check_columns(folder, name)
        print(f"{folder.name}: {name}, {rows} rows")


def check_columns(folder: Path, name: str) -> None:
    """Compare the first and the last row with the expected ones, if there are any."""
    expected = folder / "expected" / f"{name}.json"
    if expected.exists():
        rows = load_format(folder, name)["train"]
        assert [rows[0], rows[-1]] == json.loads(expected.read_text()), f"{name}: {rows[0]} {rows[-1]}"


def check_fields(rows: Any) -> None:
    for row in rows["train"]:
        assert AXOLOTL.keys() <= row.keys(), row.keys()  # further columns say who rated; trainers leave them out
        assert all(isinstance(row[name], kind) for name, kind in AXOLOTL.items())
        assert len(row["completions"]) == len(row["labels"]) > 0
        assert all(type(label) is bool for label in row["labels"])


def train_two_steps(rows: Any) -> None:
    from transformers import Qwen2Config, Qwen2ForTokenClassification
    from trl.experimental.prm import PRMConfig, PRMTrainer

    tokenizer = make_tokenizer(rows["train"])
    model = Qwen2ForTokenClassification(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            num_labels=2,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    config = PRMConfig(
        output_dir="trained",
        max_steps=2,
        per_device_train_batch_size=2,
        use_cpu=True,
        bf16=False,
        report_to=[],
        save_strategy="no",
        max_length=256,
    )
    trainer = PRMTrainer(model=model, args=config, processing_class=tokenizer, train_dataset=rows["train"])
    result = trainer.train()
    assert result.global_step == 2
    assert result.training_loss == result.training_loss, "the loss is not a number"


def make_tokenizer(rows: Any) -> Any:
    """Build a tokenizer from the data, without downloads."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    texts = [text for row in rows for text in (row["prompt"], *row["completions"])]
    words = ["<pad>", "<unk>", "<s>", "</s>", *sorted({word for text in texts for word in text.split()})]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
