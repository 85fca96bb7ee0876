//! The interactive program on a real terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::harness::{Workplace, wait_until};

const PATIENCE: Duration = Duration::from_secs(30);

struct Screen {
    keyboard: File,
    output: Receiver<String>,
    shown: String,
    child: std::process::Child,
}

impl Screen {
    fn open(workplace: &Workplace) -> Screen {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let terminal = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
        let copy = || -> OwnedFd { terminal.try_clone().unwrap() };
        // No --protocol: a terminal implies it.
        let mut command = workplace.command(&[]);
        let child = command
            .stdin(copy())
            .stdout(copy())
            .stderr(copy())
            .spawn()
            .unwrap();
        let keyboard = File::from(controller);
        let mut reader = keyboard.try_clone().unwrap();
        let (sender, output) = sync_channel(1000);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
        Screen {
            keyboard,
            output,
            shown: String::new(),
            child,
        }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads until the screen ends with `end`, and returns what appeared.
    fn read_to(&mut self, end: &str) -> String {
        while !self.shown.ends_with(end) {
            let Ok(text) = self.output.recv_timeout(PATIENCE) else {
                panic!("{end:?} never came; the screen has {:?}", self.shown)
            };
            self.shown.push_str(&text);
        }
        std::mem::take(&mut self.shown)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn prompts_are_typed_and_answered() {
    let workplace = Workplace::new(
        "[agent]\nlog = 'log'\n[[turn]]\nrepeat = true\nsteps = [{ say = 'Re: {{prompt}}' }]",
    );
    let mut screen = Screen::open(&workplace);
    screen.read_to("\x1b[?2004h> ");
    screen.press("helo\x7flo\r");
    assert_eq!(
        screen.read_to("\r\n\r\n> "),
        "helo\x08 \x08lo\r\nRe: hello\r\n\r\n> "
    );
    screen.press("\x1b[200~two\rlines\x1b[201~\r");
    assert!(
        screen
            .read_to("\r\n\r\n> ")
            .ends_with("Re: two\r\nlines\r\n\r\n> ")
    );
    assert_eq!(workplace.read("log/0002.txt"), "two\nlines");
    screen.press("\x04");
    let status = wait_until("the end", || screen.child.try_wait().unwrap());
    assert!(status.success());
}

#[test]
fn keys_answer_questions_and_interrupt() {
    let workplace = Workplace::with_example("permission.toml");
    let mut screen = Screen::open(&workplace);
    screen.read_to("> ");
    screen.press("run the tests\r");
    screen.read_to("Run the tests? [y/n] ");
    screen.press("y");
    assert!(
        screen
            .read_to("\r\n\r\n> ")
            .contains("They printed: 3 passed")
    );

    let workplace = Workplace::with_example("crash.toml");
    let mut screen = Screen::open(&workplace);
    screen.read_to("> ");
    screen.press("hang\r");
    screen.read_to("hang\r\n");
    screen.press("\x03");
    screen.read_to("Interrupted.\r\n\r\n> ");
    screen.press("error\r");
    screen.read_to("Error: the model refused\r\n\r\n> ");
}
