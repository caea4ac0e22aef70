"""Settings that are secrets: where they may stand, and that nothing shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.settings import SettingsError, resolve, table
from cli.settings.masking import hide, looks_secret
from cli.settings.setting import Kind, Scope, Setting, parse_value, render_value
from cli.settings.setting_sources import parse_flags
from model.secret import HIDDEN, Secret
from security.client.config_providers import ConfigProviders, ProviderError

NAME = "planted.password"
PLANTED = "pl4nted-s3cret"


@pytest.fixture(autouse=True)
def setting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Setting]:
    """A setting that is a password, whichever others there are."""
    added = Setting(NAME, Kind.PASSWORD, None, Scope.SECURITY, "A password.")
    every = MappingProxyType({**table.SETTINGS, NAME: added})
    for module in ("cli.settings.table", "cli.settings.setting_sources"):
        monkeypatch.setattr(f"{module}.SETTINGS", every)
    return iter((added,))


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def refuse(file: Path | None = None, *flags: str, **environment: str) -> str:
    """The lines of the error; none has the secret."""
    with pytest.raises(SettingsError) as caught:
        resolve(parse_flags(flags), environment, file)
    text = "\n".join(caught.value.lines)
    for each in (text, repr(caught.value), str(caught.value)):
        assert PLANTED not in each
    return text


@pytest.mark.parametrize("flag", [f"--{NAME}", "--planted-password"])
@pytest.mark.parametrize("form", ["{} {}", "{}={}"])
def test_a_secret_is_refused_on_the_command_line(flag: str, form: str) -> None:
    said = refuse(None, *form.format(flag, PLANTED).split(" "))
    assert said == (
        f"{flag} is not taken on the command line, where `ps` shows it: use the file of --config, "
        "or the environment variable MUSTER_PLANTED_PASSWORD"
    )


def test_so_is_one_of_kafka_that_has_no_effect() -> None:
    assert "where `ps` shows it" in refuse(None, f"--zookeeper.ssl.keystore.password={PLANTED}")


def test_a_word_that_is_no_flag_is_not_repeated() -> None:
    assert refuse(None, f"{NAME}={PLANTED}") == f"unexpected argument: {NAME}"


def test_a_file_or_a_variable_has_it(tmp_path: Path) -> None:
    file = write(tmp_path / "muster.properties", f"{NAME}={PLANTED}\n")
    for resolved in (resolve(file=file), resolve((), {"MUSTER_PLANTED_PASSWORD": PLANTED})):
        assert resolved.values[NAME] == Secret(PLANTED)
        assert PLANTED not in repr(resolved)
        assert render_value(resolved.values[NAME]) == HIDDEN
        assert resolved.exposed == ()


@pytest.mark.parametrize("form", ["table", "json"])
def test_config_show_hides_it(tmp_path: Path, form: str) -> None:
    file = write(tmp_path / "muster.properties", f"{NAME}={PLANTED}\n", 0o644)
    arguments = ["config", "show", "--origin", "--config", str(file), "-o", form]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert PLANTED not in done.output
    assert HIDDEN in done.output
    assert f"chmod o-r {file}" in done.stderr
    if form == "json":
        (shown,) = [
            each["value"] for each in json.loads(done.stdout)["settings"] if each["name"] == NAME
        ]
        assert shown == HIDDEN


@pytest.mark.parametrize(
    "text",
    [
        f"{NAME}x={PLANTED}",
        f"my.secret={PLANTED}",
        f"sasl.jaas.confg={PLANTED}",
        f"listen.kafka=a\n{NAME}={PLANTED}\\uZZZZ",
        f"{NAME}=\\u{PLANTED}",
    ],
)
def test_no_mistake_in_a_file_shows_a_value(tmp_path: Path, text: str) -> None:
    said = refuse(write(tmp_path / "muster.properties", text))
    assert "muster.properties" in said
    assert PLANTED[:4] not in said


def test_no_mistake_in_toml_shows_a_value(tmp_path: Path) -> None:
    for text in (f'"{NAME}" = 7', f'"{NAME}" = ["{PLANTED}"]', f'"{NAME}" = {PLANTED}'):
        said = refuse(write(tmp_path / "muster.toml", text))
        assert "7" not in said.replace(str(tmp_path), "")


def test_a_file_that_everybody_may_read_is_told(tmp_path: Path) -> None:
    file = write(tmp_path / "muster.properties", f"{NAME}={PLANTED}\n", 0o644)
    (line,) = resolve(file=file).exposed
    assert line.endswith(f"every user of this machine may read it: chmod o-r {file}")
    assert resolve(file=write(file, f"{NAME}={PLANTED}\n", 0o640)).exposed == ()
    assert resolve(file=write(file, "data.dir=x\n", 0o644)).exposed == ()


def test_blanks_around_a_password_are_no_part_of_it(setting: Iterator[Setting]) -> None:
    (each,) = setting
    assert parse_value(each, f" {PLANTED}\n") == Secret(PLANTED)
    assert parse_value(each, "  ") is None


# --------------------------------------------------------------------------- config providers


def test_each_provider_has_it(tmp_path: Path) -> None:
    secrets = write(tmp_path / "secrets.properties", f"other=1\nkey.password={PLANTED}\n")
    write(tmp_path / "password", PLANTED + "\n")
    for reference in (
        f"${{file:{secrets}:key.password}}",
        "${env:KEY_PASSWORD}",
        f"${{directory:{tmp_path}:password}}",
    ):
        text = f"config.providers=file,env,directory\n{NAME}={reference}\n"
        resolved = resolve(
            (), {"KEY_PASSWORD": PLANTED}, write(tmp_path / "m.properties", text, 0o644)
        )
        assert resolved.values[NAME] == Secret(PLANTED)
        assert resolved.exposed == (), "the file with the reference has no secret"


def test_providers_are_named_as_in_kafka(tmp_path: Path) -> None:
    secrets = write(tmp_path / "secrets.properties", f"a={PLANTED}\n", 0o644)
    package = "org.apache.kafka.common.config.provider"
    text = (
        "config.providers=vault, e\n"
        f"config.providers.vault.class={package}.FileConfigProvider\n"
        f"config.providers.vault.param.allowed.paths={tmp_path}\n"
        f"config.providers.e.class={package}.EnvVarConfigProvider\n"
        "config.providers.e.param.allowlist.pattern=^DATA_.*\n"
        f"{NAME}=${{vault:{secrets}:a}}\n"
        "data.dir=/var/${e:DATA_NAME}/x\n"
    )
    file = write(tmp_path / "m.properties", text)
    resolved = resolve((), {"DATA_NAME": "n"}, file)
    assert (resolved.values[NAME], resolved.values["data.dir"]) == (Secret(PLANTED), "/var/n/x")
    (line,) = resolved.exposed
    assert str(secrets) in line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{name}=${{file:{folder}/s:a}}", "needs config.providers=file"),
        ("config.providers=file\n{name}=${{file:{folder}/none:a}}", "cannot read {folder}/none: "),
        ("config.providers=file\n{name}=${{file:{folder}/s:b}}", "{folder}/s has no key b"),
        ("config.providers=file\n{name}=${{file:{folder}/s}}", "is not ${{file:PATH:KEY}}"),
        ("config.providers=file\n{name}=${{file:{folder}/bad:a}}", "{folder}/bad: line 1: \\u is"),
        ("config.providers=file\n{name}=${{file:{folder}/raw:a}}", "raw is not text in UTF-8"),
        ("config.providers=file\n{name}=${{file:/dev/zero:a}}", "has more than 1048576 bytes"),
        ("config.providers=env\n{name}=${{env:NONE}}", "the variable NONE is not set"),
        ("config.providers=directory\n{name}=${{directory:{folder}:../s}}", "FOLDER:FILE"),
        ("config.providers=vault\n", "config.providers.vault.class must be one of"),
        ("config.providers=file\nconfig.providers.x.class=y", "does not list x"),
        ("config.providers=file\nconfig.providers.file.param.z=y", "unknown setting"),
        (
            "config.providers=file\nconfig.providers.file.param.allowed.paths=/etc\n"
            "{name}=${{file:{folder}/s:a}}",
            "is not within allowed.paths",
        ),
        (
            "config.providers=env\nconfig.providers.env.param.allowlist.pattern=A\n"
            "{name}=${{env:SECRET}}",
            "SECRET is not allowed by allowlist.pattern",
        ),
        (
            "config.providers=env\nconfig.providers.env.param.allowlist.pattern=(\n",
            "is no regular expression",
        ),
    ],
)
def test_what_cannot_be_resolved_says_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path / "s", f"a={PLANTED}\n")
    write(tmp_path / "bad", f"a={PLANTED}\\u{PLANTED}\n")
    (tmp_path / "raw").write_bytes(b"a=" + PLANTED.encode() + b"\xff\n")
    file = write(tmp_path / "m.properties", text.format(name=NAME, folder=tmp_path))
    lines = refuse(file, SECRET=PLANTED)
    assert said.format(folder=tmp_path) in lines
    assert str(file) in lines


@pytest.mark.parametrize(
    "name",
    ["listen.kafka", "audit.rate.max", "log.level", "allow.unauthenticated", "super.users"],
)
def test_a_secret_in_a_wrong_place_is_not_shown(tmp_path: Path, name: str) -> None:
    text = f"config.providers=env\n{name}=${{env:SECRET}}\nauthorizer.class.name=StandardAuthorizer"
    said = refuse(write(tmp_path / "m.properties", text), SECRET=PLANTED)
    assert name in said


def test_other_texts_with_braces_stay() -> None:
    providers = ConfigProviders({"config.providers": "env"}, {"A": "1"})
    for text in ("${a}", "${x:y}", "$1", "RULE:^CN=(.*?)$/$1/", "${}", "${", "}${:}"):
        assert providers.expand(text) == text
    assert providers.expand_all(["${env:A}", 2]) == ["1", 2]
    assert providers.expand("${env:A}${env:A}") == "11"
    with pytest.raises(ProviderError):
        providers.expand("${env:B}")


def test_an_evil_text_is_expanded_in_linear_time() -> None:
    providers = ConfigProviders({"config.providers": "env"}, {})
    assert len(providers.expand("${" * 200_000)) == 400_000
    assert len(providers.expand("${a:" * 100_000)) == 400_000


def test_names_that_look_secret() -> None:
    for name in ("ssl.key.password", "sasl.jaas.config", "MY_SECRET", "ssl.keystore.key"):
        assert looks_secret(name)
    for name in ("log.checkpoint.keys", "data.dir", "ssl.keystore.location"):
        assert not looks_secret(name)
    assert hide("a s3cr and s3cret", ["s3cr", "s3cret", "a"]) == f"a {HIDDEN} and {HIDDEN}"
