# SPDX-License-Identifier: Apache-2.0
"""Calendars by the clock of a named time zone: zone files made here, so that it is morning in one and evening in the other."""

import contextlib
import glob
import json
import os
import shutil
import sqlite3
import struct
import time

import harness

SHUT = "queue \"%s\" start only in its windows (%s)"


def zone_file(folder, name, hours):
    """Clocks so many hours ahead of UTC, for ever: two empty blocks and the rule behind them."""
    block = b"TZif2" + bytes(15) + struct.pack(">6I", 0, 0, 0, 0, 1, 4) + struct.pack(">iBB", hours * 3600, 0, 0) + b"LMT\0"
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(block + block + b"\n<X>%d\n" % -hours)


def clock_at(hour):
    """How far ahead of UTC a clock is on which it is now that hour, -11 to 12."""
    ahead = (hour - time.gmtime().tm_hour) % 24
    return ahead - 24 if ahead > 12 else ahead


def test_a_calendar_goes_by_the_clock_of_its_zone(tmp_path):
    zone_file(tmp_path, "Test/Morning", clock_at(6))
    zone_file(tmp_path, "Test/Evening", clock_at(18))
    with harness.Daemon("sim:1x4xH100-80GB", env={"TZDIR": str(tmp_path)}) as d:
        d.run("queues", "create", "day", "--calendar", "00:00-12:00, Test/Morning")
        d.run("queues", "create", "night", "--calendar", "00:00-12:00, Test/Evening")
        assert [q["calendar"] for q in d.ask("queues") if q["name"] == "day"] == ["00:00-12:00, Test/Morning"]
        first = d.submit("true", flags=("-q", "day", "--limit", "1m"))
        d.wait(first, "succeeded")
        late = d.submit("true", flags=("-q", "night", "--limit", "1m"))
        said = " ".join(d.run("explain", str(late), "-v").out.split())
        assert SHUT % ("night", "00:00-12:00, Test/Evening") in said, said
        own = d.submit("true", flags=("--window", "00:00-12:00, Test/Evening", "--limit", "1m"))
        said = " ".join(d.run("explain", str(own), "-v").out.split())
        assert "runs only in its window (00:00-12:00, Test/Evening)" in said, said
        dry = d.run("submit", "--dry-run", "-", stdin='{"command": "true", "limit": "1m", "window": "12:00-24:00, Test/Evening"}').out
        assert "would start now" in dry, dry
        # A clock that is known goes on as it was; what the files say now counts from the next start on.
        zone_file(tmp_path, "Test/Evening", clock_at(6))
        d.run("queues", "change", "night", "--calendar", "00:00-11:59, Test/Evening")
        assert d.state(late) == "queued"
        d.stop()
        d.up()
        d.wait(late, "succeeded")
        d.wait(own, "succeeded")


def test_a_clock_outlives_its_file(tmp_path):
    zone_file(tmp_path, "Test/Evening", clock_at(18))
    with harness.Daemon("sim:1x4xH100-80GB", env={"TZDIR": str(tmp_path)}) as d:
        d.run("queues", "create", "night", "--calendar", "00:00-12:00, Test/Evening")
        late = d.submit("true", flags=("-q", "night", "--limit", "1m"))
        os.unlink(tmp_path / "Test/Evening")
        d.kill()
        d.up()
        said = " ".join(d.run("explain", str(late), "-v").out.split())
        assert SHUT % ("night", "00:00-12:00, Test/Evening") in said, said
        assert "its clock goes on as it was known" in d.log()


def test_zones_that_are_not_there_are_refused_with_near_names(tmp_path):
    zone_file(tmp_path, "Europe/Berlin", 1)
    zone_file(tmp_path, "Asia/Tokyo", 9)
    (tmp_path / "Broken").write_bytes(b"TZif2 no")
    with harness.Daemon("sim:1x4xH100-80GB", env={"TZDIR": str(tmp_path)}) as d:
        for calendar, told in [
            ("sat-sun, Europe/Berln", 'there is no time zone "Europe/Berln"; did you mean "Europe/Berlin"?'),
            ("sat-sun, Tokyo", 'there is no time zone "Tokyo"; did you mean "Asia/Tokyo"?'),
            ("sat-sun, Mars/Olympus", 'there is no time zone "Mars/Olympus"; names are like'),
            ("sat-sun, ../../etc/passwd", "is not understood"),
            ("sat-sun, Europe/../Asia/Tokyo", "is not understood"),
            ("sat-sun, Broken", "is not understood: it is no zone file"),
            ("sat-sun, Europe/Berlin, utc+1", "are two clocks"),
        ]:
            refused = d.run("queues", "create", "night", "--calendar", calendar, check=False)
            assert refused.code != 0 and told in " ".join(refused.err.split()), refused
            refused = d.run("run", "--detach", "--window", calendar, "--", "true", check=False)
            assert refused.code != 0 and told in " ".join(refused.err.split()), refused
            refused = d.run("submit", "--dry-run", "-", stdin=json.dumps({"command": "true", "window": calendar}), check=False)
            assert refused.code != 0 and told in " ".join(refused.err.split()), refused
        assert [q["name"] for q in d.ask("queues")] == ["default"] and d.ask("jobs", "--all") == []


def test_a_clock_whose_record_is_lost_is_read_anew(tmp_path):
    zone_file(tmp_path, "Test/Evening", clock_at(18))
    zone_file(tmp_path, "Test/Dusk", clock_at(18))
    with harness.Daemon("sim:1x4xH100-80GB", env={"TZDIR": str(tmp_path)}) as d:
        d.run("queues", "create", "night", "--calendar", "00:00-12:00, Test/Evening")
        own = d.submit("true", flags=("--window", "00:00-12:00, Test/Dusk", "--limit", "1m"))
        d.stop()
        lost = 0
        for path in glob.glob(d.data + "/journal/*.sqlite"):
            with contextlib.closing(sqlite3.connect(path)) as db, db:
                lost += db.execute("UPDATE record SET text = replace(text, '\"', '!') WHERE text LIKE '%\"name\":\"Test/%'").rowcount
        assert lost == 2
        shutil.rmtree(d.data + "/snapshots")
        d.up()
        late = d.submit("true", flags=("-q", "night", "--limit", "1m"))
        said = " ".join(d.run("explain", str(late), "-v").out.split())
        assert SHUT % ("night", "00:00-12:00, Test/Evening") in said, said
        assert "runs only in its window (00:00-12:00, Test/Dusk)" in " ".join(d.run("explain", str(own), "-v").out.split())
