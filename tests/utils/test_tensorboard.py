"""Event files: framing, checksums, messages, pictures. The reader is written for these tests."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils.tensorboard import SummaryWriter, _events


def bitwise_crc(data):
    """CRC-32C by its definition, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = bitwise_crc(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    data, at = path.read_bytes(), 0
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert check == masked(data[at : at + 8])
        body = data[at + 12 : at + 12 + length]
        assert len(body) == length
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(body)
        yield body
        at += 16 + length


def fields(data):
    """Field number -> values: ints, floats or bytes, by wire type."""
    out, at = {}, 0

    def varint():
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return n

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        elif key & 7 == 1:
            (value,) = struct.unpack_from("<d", data, at)
            at += 8
        elif key & 7 == 5:
            (value,) = struct.unpack_from("<f", data, at)
            at += 4
        else:
            assert key & 7 == 2
            size = varint()
            value = data[at : at + size]
            assert len(value) == size
            at += size
        out.setdefault(key >> 3, []).append(value)
    return out


def events(folder):
    """(tag, step, fields of the value) of all files below the folder, in order."""
    out = []
    for path in sorted(Path(folder).rglob("events.out.tfevents.*")):
        first, *rest = [fields(body) for body in records(path)]
        assert first[3] == [b"brain.Event:2"]
        for event in rest:
            (value,) = fields(event[5][0])[1]
            value = fields(value)
            out.append((value[1][0].decode(), event.get(2, [0])[0], value))
    return out


def unpacked(data):
    return list(struct.unpack(f"<{len(data) // 8}d", data))


def test_checksum():
    assert bitwise_crc(b"123456789") == 0xE3069283
    for data in (b"", b"a", bytes(range(256))):
        assert _events.crc32c(data) == bitwise_crc(data)


def test_scalars(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", torch.tensor(0.5, requires_grad=True), 3)
        writer.add_scalar("loss", np.float64(1e300), 2**40)
        writer.add_scalar("loss", -2, -1)
    found = {(tag, step): value[2][0] for tag, step, value in events(tmp_path)}
    assert found == {("loss", 3): 0.5, ("loss", 2**40): float("inf"), ("loss", 2**64 - 1): -2.0}
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars("both", {"a": 1, "b": 2.0}, 4)
    assert events(tmp_path / "both_a")[0][2][2] == [1.0]
    assert events(tmp_path / "both_b")[0][2][2] == [2.0]


def test_one_number_is_wanted(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(ValueError, match=r"add_scalar: expected one number, got shape \[2\]"):
            writer.add_scalar("x", torch.ones(2))


def test_histogram(tmp_path):
    x = torch.tensor([-1.0, 0.0, 0.5, 2.0, 2.0])
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("w", x, 1, bins=[-2, -0.5, 0.25, 1, 3, 4])
        writer.add_histogram("w", x, 2)
        writer.add_histogram("w", x, 3, max_bins=2, bins=4)
    plain, default, few = [fields(value[5][0]) for _, _, value in events(tmp_path)]
    assert [plain[i][0] for i in range(1, 6)] == [-1.0, 2.0, 5.0, 3.5, 9.25]
    assert unpacked(plain[6][0]) == [-0.5, 0.25, 1.0, 3.0]
    assert unpacked(plain[7][0]) == [1.0, 1.0, 1.0, 2.0]
    assert sum(unpacked(default[7][0])) == 5.0
    assert unpacked(default[6][0])[-1] >= 2.0
    assert unpacked(few[7][0]) == [2.0, 3.0]
    assert unpacked(few[6][0]) == [0.5, 2.0]
    for bad in (torch.empty(0), torch.tensor([float("nan")])):
        with pytest.raises(ValueError, match="expected finite numbers, at least one"):
            SummaryWriter(tmp_path).add_histogram("w", bad)


def decoded(png):
    """Pixels of a PNG without filters."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", png, at + 8 + size)[0] == zlib.crc32(kind + data)
        chunks[kind] = data
        at += 12 + size
    width, height, depth, colour = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert depth == 8
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[colour]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert (rows[:, 0] == 0).all()
    return rows[:, 1:].reshape(height, width, channels)


@pytest.mark.parametrize(
    ("layout", "shape"), [("CHW", (3, 2, 5)), ("HWC", (2, 5, 4)), ("HW", (2, 5)), ("WH", (5, 2))]
)
def test_image(tmp_path, layout, shape):
    x = torch.randint(0, 256, shape, dtype=torch.uint8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("x", x, dataformats=layout)
    image = fields(events(tmp_path)[0][2][4][0])
    array = x.numpy()
    if "C" not in layout:
        array, layout = array[..., None], layout + "C"
    want = array.transpose([layout.index(letter) for letter in "HWC"])
    assert [image[i][0] for i in (1, 2, 3)] == list(want.shape)
    assert (decoded(image[4][0]) == want).all()


def test_images_in_rows_and_fractions(tmp_path):
    x = torch.linspace(0, 1, 9).reshape(9, 1, 1, 1).expand(9, 1, 2, 3)
    with SummaryWriter(tmp_path) as writer:
        writer.add_images("x", x)
    pixels = decoded(fields(events(tmp_path)[0][2][4][0])[4][0])
    assert pixels.shape == (4, 24, 1)
    assert pixels[0, ::3, 0].tolist() == [int(i / 8 * 255) for i in range(8)]
    assert pixels[2, :6, 0].tolist() == [255, 255, 255, 0, 0, 0]


def test_wrong_layout(tmp_path):
    with pytest.raises(ValueError, match="expected dataformats with a letter of HWC for each"):
        SummaryWriter(tmp_path).add_image("x", torch.ones(2, 2), dataformats="CHW")


def test_text(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("note", "**größer**", 7)
    ((tag, step, value),) = events(tmp_path)
    assert (tag, step) == ("note/text_summary", 7)
    tensor = fields(value[8][0])
    assert tensor[1] == [7]
    assert tensor[8][0].decode() == "**größer**"
    assert fields(fields(value[9][0])[1][0])[1] == [b"text"]


def test_hparams(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1, "name": "a", "deep": True}, {"loss": 0.5}, run_name="r")
    by_tag = {tag: value for tag, _, value in events(tmp_path / "r")}
    assert by_tag["loss"][2] == [0.5]
    plugin = {t: fields(fields(v[9][0])[1][0]) for t, v in by_tag.items() if 9 in v}
    assert all(p[1] == [b"hparams"] for p in plugin.values())
    experiment = fields(fields(plugin["_hparams_/experiment"][2][0])[2][0])
    infos = [fields(info) for info in experiment[4]]
    assert [(i[1][0], i[4][0]) for i in infos] == [(b"lr", 3), (b"name", 1), (b"deep", 2)]
    start = fields(fields(plugin["_hparams_/session_start_info"][2][0])[3][0])
    values = [fields(entry) for entry in start[1]]
    assert fields(values[0][2][0]) == {2: [0.1]}
    assert fields(values[1][2][0]) == {3: [b"a"]}
    assert fields(values[2][2][0]) == {4: [1]}


def test_graphs_are_refused(tmp_path):
    with pytest.raises(NotImplementedError, match="graphs of models are not written"):
        SummaryWriter(tmp_path).add_graph(torch.nn.Linear(1, 1))


def test_events_are_on_the_disk_after_flush_and_files_are_not_shared(tmp_path):
    first, second = SummaryWriter(tmp_path), SummaryWriter(tmp_path, filename_suffix=".x")
    first.add_scalar("a", 1)
    second.add_scalar("b", 2)
    first.flush()
    second.flush()
    assert sorted(tag for tag, _, _ in events(tmp_path)) == ["a", "b"]
    first.close()
    second.close()
    assert first.get_logdir() == str(tmp_path)
