//! Settings as people write them.

use super::*;
use crate::listen::Dialect;

#[test]
fn what_is_printed_can_be_read_again_and_means_the_same() {
    let mut settings = Settings::default();
    settings.door.push("fuq2=127.0.0.1:7912,group=exp,allow=10.0.0.0/8,insecure".parse().unwrap());
    let key = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
    settings.door.push(format!("dwork=127.0.0.1:1,curve,curve_allow={key}").parse().unwrap());
    settings.door.push("rrmq=localhost:6714".parse().unwrap());
    settings.native = Listen::Off;
    settings.http_allow = vec!["10.0.0.0/8".parse().unwrap()];
    settings.http_limits.viewers = 5;
    settings.logins.wrong_tokens = 3;
    settings.conduct.good_share_min = 0.25;
    settings.outputs.total_bytes = 7;
    let pool = "[[pool]]\nname = \"night\"\nkind = \"slurm\"\nslots = 4\nresources = { gpu = 1 }\n";
    settings.pool = Settings::parse(pool).unwrap().pool;
    assert_eq!(Settings::parse(&settings.text()).unwrap(), settings);
}

/// One test for all tables: a name of version 0.1, and what it is called now.
#[test]
fn names_of_version_0_1_are_read_and_those_of_today_are_written() {
    let old = "[limits]\nconnections_a_door = 1\n\
               [http_limits]\nconnections_an_address = 2\nbody_preds = 3\n\
               [tasks]\ntasks_a_submit = 4\npreds_a_task = 5\npreds_shown = 6\n\
               [conduct]\nresults_min = 7\ngood_share_min = 0.5\nrecent_failures_max = 8\nothers_min = 9\n\
               hold_most_ms = 99999999\n\
               [[door]]\ndialect = \"dwork\"\naddress = \"localhost:0\"\ntasks_a_message = 10\n";
    let settings = Settings::parse(old).unwrap();
    assert_eq!(settings.limits.connections_per_door, 1);
    assert_eq!(settings.http_limits.connections_per_address, 2);
    assert_eq!(settings.http_limits.body_after, 3);
    assert_eq!(settings.tasks.tasks_a_submit, 4);
    assert_eq!(settings.tasks.preds_a_task, 5);
    assert_eq!(settings.tasks.preds_shown, 6);
    let conduct = &settings.conduct;
    assert_eq!((conduct.results_min, conduct.recent_failures_max, conduct.others_min), (7, 8, 9));
    assert_eq!((conduct.good_share_min, conduct.hold_most_ms), (0.5, 99_999_999));
    let text = settings.text();
    assert!(text.contains("max_tasks_per_message = 10"), "{text}");
    assert_eq!(Settings::parse(&text).unwrap(), settings);
    let names = text.lines().filter_map(|line| Some(line.split_once(" = ")?.0));
    for name in names {
        let is_old = ["_max", "_min"].iter().any(|end| name.ends_with(end))
            || ["_a_", "_an_", "_most", "preds"].iter().any(|part| name.contains(part));
        assert!(!is_old, "{name}: limits begin with max_ or min_, and \"per\" is said so");
    }
}

#[test]
fn a_file_says_only_what_differs() {
    let text = "durability = \"os\"\n[limits]\nconnections = 5\n[[door]]\ndialect = \"fuq2\"\n\
                address = \"localhost:0\"\n";
    let settings = Settings::parse(text).unwrap();
    assert_eq!(settings.durability, Durability::Os);
    assert_eq!(settings.limits.connections, 5);
    assert_eq!(settings.limits.write_ms, DoorLimits::default().write_ms);
    assert_eq!(settings.door[0].dialect(), Dialect::Fuq2);
    assert!(settings.door[0].address.at().ip().is_loopback());
}

#[test]
fn a_mistake_is_named_with_its_line() {
    for (text, words) in [
        ("\ndurabilty = \"os\"\n", "line 2: unknown field `durabilty`"),
        ("[limits]\nconections = 1\n", "line 2: unknown field `conections`"),
        ("http = \"off\"\nnative = \"here\"\n", "line 2: here is not an address"),
        ("[[door]]\ndialect = \"latin\"\naddress = \"127.0.0.1:0\"\n", "no dialect latin"),
        ("[[door]]\ndialect = \"fuq2\"\n", "missing field `address`"),
        ("\n[[pool]]\nname = \"a\"\nkind = \"slurm\"\nslot = 4\n", "a pool has no field `slot`"),
        ("[[pool]]\nname = \"a\"\nkind = \"slurm\"\nslots = 0\n", "at least one slot"),
        (
            "[[pool]]\nname = \"a\"\nkind = \"slurm\"\nslots = 1\n[[pool]]\nname = \"a\"\nkind = \"pbs\"\nslots = 1\n",
            "two pools are named a",
        ),
        ("durability = \"none\"\n", "line 1: unknown variant `none`"),
        ("http_allow = [\"here\"]\n", "line 1: here is not a network"),
        ("[limits]\nconnections = 0\n", "limits.connections = 0: it has to be at least 1"),
        ("[limits]\nmessage_bytes = 10\n", "limits.message_bytes = 10: it has to be at least 4096"),
        ("[limits]\nhandshake_ms = 0\n", "limits.handshake_ms = 0"),
        ("[http_limits]\nconnections_per_address = 0\n", "http_limits.connections_per_address = 0"),
    ] {
        let told = Settings::parse(text).unwrap_err();
        assert!(told.contains(words), "{told}");
        assert!(!told.contains('\n'), "{told}");
    }
}

#[test]
fn a_door_of_a_file_has_what_its_dialect_has_and_nothing_else() {
    let door = |dialect: &str, more: &str| {
        let text =
            format!("[[door]]\ndialect = \"{dialect}\"\naddress = \"127.0.0.1:1\"\n{more}\n");
        Settings::parse(&text).map(|mut settings| settings.door.remove(0).kind)
    };
    let kind = door("runexp", "stay = true\nexit_code = true").unwrap();
    assert_eq!(kind, DoorKind::Runexp(RunexpDoor { stay: true, exit_code: true }));
    for (dialect, more, words) in [
        ("fuq2", "stay = true", "door fuq2: stay is an option of dwork and runexp doors"),
        (
            "fuq2",
            "colour = 1",
            "door option colour: fuq2 doors have group, allow, insecure and numbering",
        ),
        ("dwork", "lease_ms = \"long\"", "`long` is not a number"),
        ("dwork", "stay = 1", "door dwork: invalid type"),
    ] {
        let told = door(dialect, more).unwrap_err();
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn a_door_is_written_in_one_word() {
    let door: DoorSettings =
        "fuq2=127.0.0.1:7,group=a,allow=10.0.0.0/8,allow=::1,insecure".parse().unwrap();
    assert_eq!(door.address.at().port(), 7);
    assert_eq!(door.group.as_deref(), Some("a"));
    assert_eq!(door.allow.len(), 2);
    assert!(door.insecure);
    let door: DoorSettings = "dwork=127.0.0.1:7,patience_ms=0,lease_ms=5,stay,any".parse().unwrap();
    let (patience_ms, lease_ms) = (Some(0), Some(5));
    let usual = DworkDoor::default;
    let dwork = DworkDoor { patience_ms, lease_ms, stay: true, any: true, ..usual() };
    assert_eq!(door.kind, DoorKind::Dwork(dwork));
    let door: DoorSettings = "dwork=127.0.0.1,tasks_a_message=5,only_holder".parse().unwrap();
    let dwork = DworkDoor { max_tasks_per_message: Some(5), only_holder: true, ..usual() };
    assert_eq!((door.address.at().port(), door.kind), (6125, DoorKind::Dwork(dwork)));
    let door: DoorSettings =
        "rrmq=127.0.0.1,queue=1,queue_bytes=2,queue_ms=3,grace_ms=4,slot_ms=5".parse().unwrap();
    let rrmq = RrmqDoor {
        queue: Some(1),
        queue_bytes: Some(2),
        queue_ms: Some(3),
        grace_ms: Some(4),
        slot_ms: Some(5),
        ..RrmqDoor::default()
    };
    assert_eq!((door.address.at().port(), door.kind), (6714, DoorKind::Rrmq(rrmq)));
    let key = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
    let door: DoorSettings = format!("rrmq=127.0.0.1:7,curve_allow={key}").parse().unwrap();
    assert_eq!(door.kind.curve().unwrap()[0].to_string(), key);
    let door: DoorSettings =
        "fuq=0.0.0.0,auth=a,cert=c,key=k,cookie_ms=5,no_shutdown,numbering=oldest".parse().unwrap();
    assert_eq!(door.check(), Ok(()));
    assert_eq!(door.address.at().port(), 5429);
    let DoorKind::Fuq(FuqDoor { auth, cookie_ms, .. }) = door.kind else { panic!("a fuq door") };
    assert_eq!((auth, cookie_ms), (Some("a".into()), Some(5)));
    for (text, words) in [
        ("dwork=127.0.0.1:1,curve_allow=short", "key has 5 characters, not 40"),
        ("dwork=127.0.0.1:1,lease_ms=long", "door option lease_ms=long"),
        ("fuq2", "dialect=address"),
        ("latin=127.0.0.1:1", "no dialect latin; there are native, fuq, fuq2, fuq1, dwork"),
        ("fuq2=7912", "7912 is not an address"),
        ("fuq2=127.0.0.1:1,open", "door option open"),
        ("fuq2=127.0.0.1:1,allow=x", "x is not a network"),
    ] {
        let told = text.parse::<DoorSettings>().unwrap_err().to_string();
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn a_door_without_a_lock_stays_on_this_machine_unless_told_otherwise() {
    let check = |text: &str| text.parse::<DoorSettings>().and_then(|door| door.check());
    assert_eq!(check("fuq2=127.0.0.1:0"), Ok(()));
    assert_eq!(check("fuq2=[::1]:0"), Ok(()));
    assert_eq!(check("native=0.0.0.0:0"), Ok(()));
    assert_eq!(check("fuq2=0.0.0.0:0,insecure"), Ok(()));
    let told = check("fuq2=127.0.0.1:0,stay").unwrap_err().to_string();
    assert_eq!(told, "door fuq2: stay is an option of dwork and runexp doors");
    let told = check("fuq2=127.0.0.1:0,curve").unwrap_err().to_string();
    assert_eq!(told, "door fuq2: curve is an option of dwork and rrmq doors");
    let key = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
    assert_eq!(check(&format!("dwork=0.0.0.0:0,curve_allow={key}")), Ok(()));
    for (wrong, words) in [
        ("dwork=127.0.0.1:0,lease_ms=0", "lease_ms=0 would take every task away"),
        ("dwork=127.0.0.1:0,queue=1", "queue is an option of rrmq doors"),
        ("fuq2=127.0.0.1:0,auth=x", "auth is an option of fuq doors"),
        ("dwork=127.0.0.1:0,numbering=older", "numbering is an option of fuq and fuq2 doors"),
        ("fuq2=127.0.0.1:0,numbering=odd", "there is no numbering odd"),
        ("fuq=127.0.0.1:0,cert=x", "cert=FILE and key=FILE go together"),
        ("fuq=127.0.0.1:0,cookie_ms=0", "cookie_ms=0 would end every login at once; leave it out"),
        ("fuq=127.0.0.1:0,quiet_ms=0", "quiet_ms=0 would take every busy node for gone"),
        ("fuq2=127.0.0.1:0,quiet_ms=1", "quiet_ms is an option of fuq doors"),
        ("dwork=127.0.0.1:0,group=", "group= without a name; write group=NAME"),
    ] {
        let told = check(wrong).unwrap_err().to_string();
        assert!(told.contains(words), "{told}");
    }
    for open in [
        "fuq2=0.0.0.0:0",
        "fuq2=[::]:0",
        "fuq2=192.0.2.1:0,allow=10.0.0.0/8",
        "dwork=0.0.0.0:0,curve",
    ] {
        let told = check(open).unwrap_err().to_string();
        assert!(told.contains("no authentication") && told.contains("insecure"), "{told}");
    }
}
