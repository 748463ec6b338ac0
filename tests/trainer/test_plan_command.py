"""`python -m trainer plan`, the catalogue of devices, and whether a model fits one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.trainer.test_planner_need import SAHAJBERT, recipe_of
from trainer.commands import main
from trainer.planner import devices, need
from trainer.planner.fit import judge, judge_machine
from trainer.planner.training import Part

GB = 10**9


def test_every_device_names_its_source_and_what_it_holds():
    for key, device in devices.DEVICES.items():
        assert key == key.lower() and " " not in key
        assert device.source and device.memory_bytes >= 8 * devices.GIB
        assert device.bandwidth_bytes_s > 30 * GB
        assert device.flops or device.remark


def test_kinds_of_devices_that_volunteers_lend_are_there():
    wanted = {"t4", "v100", "a100", "h100", "gh200", "rtx-3090", "apple-m2", "laptop"}
    assert wanted <= set(devices.DEVICES)
    with pytest.raises(ValueError, match="choose one of t4, v100"):
        devices.find("abacus")


def test_a_gpu_holds_what_is_not_its_computers():
    parts = [Part("weights", 10 * GB), Part("averaging buffer", 50 * GB, on_host=True)]
    gpu, laptop = judge(parts, devices.find("t4")), judge(parts, devices.find("laptop"))
    assert gpu.fits and "its computer needs 50 GB more" in gpu.words
    assert not laptop.fits
    assert "because it needs 60 GB" in laptop.words and "averaging buffer (50 GB)" in laptop.words


def test_sahajberts_albert_fits_a_laptop_and_llama_does_not_fit_a_t4(capsys):
    recipe = recipe_of(sizes=SAHAJBERT, vocabulary=32_000, sequence_length=512, micro_batch=1)
    assert judge(need.need_of(recipe).parts, devices.find("laptop")).fits
    assert main(["plan", "llama-7b", "--device", "t4"]) == 1
    assert "NVIDIA T4: does not fit, because it needs 145 GB" in capsys.readouterr().out


def test_a_recipe_is_planned_by_its_file(tmp_path, capsys):
    path = tmp_path / "recipe.json"
    path.write_text(recipe_of(sizes=SAHAJBERT, vocabulary=32_000).canonical())
    words = ["plan", str(path), "--device", "laptop", "--device", "a100", "--volunteers", "t4:2"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "17,053,824 parameters" in out and "averaging buffer" in out and "activations" in out
    assert "NVIDIA A100 40 GB: fits" in out and "341,076,480 tokens" in out
    assert "t4:2 at 30% of their speed in fp32, day and night:" in out


def test_lora_fits_where_all_of_it_does_not(capsys):
    asked = ["plan", "llama-7b", "--device", "t4"]
    assert main([*asked, "--lora", "8:nf4"]) == 0
    out = capsys.readouterr().out
    assert "LoRA trains 4,194,304 parameters, 0.06%" in out and "NVIDIA T4: fits" in out


def test_zero_on_eight_gpus_splits_what_each_holds(capsys):
    words = ["--precision", "mixed", "--zero", "3:8", "--device", "a100"]
    assert main(["plan", "7e9", *words]) == 0
    out = capsys.readouterr().out
    assert "NVIDIA A100 40 GB: fits: needs 14 GB" in out
    assert "DeepSpeed's own estimate of a GPU is 15.75 GB" in out


def test_without_a_model_it_lists_the_known_devices_and_where_their_figures_are_from(capsys):
    assert main(["plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(devices.DEVICES)
    assert all(line.endswith("]") for line in lines)


def test_8_bits_throughout_are_said_to_be_arithmetic_only(capsys):
    assert main(["plan", "7e9", "--precision", "int8"]) == 0
    assert "Arithmetic only" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["7e9", "--device", "abacus"], "device 'abacus' is not known"),
        (["7e9", "--lora", "8"], "LoRA needs a layout"),
        (["llama-7b", "--lora", "r8"], "write --zero 3:8 for stage 3 on 8 GPUs, and --lora 8"),
        (["llama-7b", "--lora", "8:int3"], "'int3' is none of"),
        (["7e9", "--zero", "5:8"], "ZeRO stage 5 does not exist"),
        (["7e9", "--zero", "3"], "write --zero 3:8"),
        (["0"], "0 parameters make no sense"),
        (["7e9", "--volunteers", "t4:x"], "write t4:3 for three of them"),
        (["7e9", "--volunteers", "apple-m2"], "nobody knows how fast Apple M2"),
        (["7e9", "--volunteers", "t4", "--utilisation", "3"], "between 0 and 1"),
        (["nowhere.json"], "nowhere.json cannot be read"),
        (["7b"], "so many parameters, as 7e9"),
        (["inf"], "inf parameters make no sense"),
        (["nan"], "nan parameters make no sense"),
        (["1e300"], "1e300 parameters make no sense"),
        (["llama-7b", "--sequences", "-3"], "-3 sequences at once make no sense"),
        (["7e9", "--utilisation", "7", "--device", "t4"], "a utilisation of 7 makes no sense"),
    ],
)
def test_what_cannot_be_planned_is_said_in_words(words, says, capsys):
    assert main(["plan", *words]) == 1
    assert says in capsys.readouterr().err


def test_a_file_that_is_no_recipe_is_named(tmp_path, capsys):
    for content in (b"{", b"{}", b"\xff\xfe", b"[" * 100_000):
        path = tmp_path / "other.json"
        path.write_bytes(content)
        assert main(["plan", str(path)]) == 1
        said = capsys.readouterr().err
        assert f"{path} is no recipe" in said and len(said.splitlines()) == 1


def test_planning_loads_no_torch():
    check = (
        "import sys; from trainer.commands import main; main(['plan', 'llama-7b']);"
        "print([name for name in ('torch', 'hivemind', 'django') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("driver_says", "key"),
    [
        ("Tesla T4", "t4"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA A100-PCIE-40GB", "a100"),
        ("NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti"),
        ("Tesla V100-SXM2-32GB", "v100-32gb"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
    ],
)
def test_a_gpu_is_known_by_the_name_its_driver_gives(driver_says, key):
    assert devices.named(driver_says) is devices.DEVICES[key]


def test_an_unknown_gpu_is_no_other():
    assert devices.named("NVIDIA GeForce GTX 1050") is None


def test_a_machine_is_judged_by_what_it_tells_of_itself():
    small = recipe_of(sizes=SAHAJBERT, vocabulary=32_000)
    huge = recipe_of("causal", {"hidden": 4096, "layers": 48, "heads": 32, "length": 512})
    assert judge_machine(small, 0) is None
    assert judge_machine(small, 8 * GB).fits and not judge_machine(small, GB).fits
    assert judge_machine(small, 8 * GB, "Tesla T4").fits
    on_gpu = judge_machine(huge, 10**13, "Tesla T4")
    assert not on_gpu.fits and "of its 17.2 GB" in on_gpu.words
    beside = judge_machine(huge, 8 * GB, "a GPU of tomorrow")
    assert not beside.fits and "of its 8 GB" in beside.words
