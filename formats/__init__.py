"""File formats of step-labeled reasoning traces. Usable without Django, settings, or a database.

Each format is one module, listed in `formats.catalog`. A format that can be read has `read`, one that can be written
has `write`, and its fields, columns and key order are defined only there. docs/formats has a page for each.

Read a file. Records are `formats.records.TraceRecord`; a record with an error is a `BadLine` with line and column:

    from formats import catalog, input_files
    from pathlib import Path

    path = Path("traces.jsonl.gz")
    with input_files.open_file(path) as stream:
        name = catalog.detect_format(stream).name
    with input_files.open_file(path) as stream:
        records = list(catalog.read_traces(stream, format=name))

Write PRM800K lines, or the rows of any other format:

    from formats import prm800k, trl
    from formats.examples import LabelRule, RowTally, TraceExample
    from formats.rows import make_export_row

    lines = list(prm800k.write(records))
    tally = RowTally()
    for number, record in enumerate(records):
        example = TraceExample([make_export_row(record, trace=number)])
        rows = list(trl.write(example, LabelRule(), tally))

Shared parts: `raw_values` splits files into values and numbers their lines, `record_reader` makes records of them,
`strict_json` checks them. `images` finds the places of images in
texts, and `image_loader` loads them. `segmenters`, `privacy`, `near_duplicates` and `titles` work on texts.
`rows` and `examples` are the input of writers.
"""
