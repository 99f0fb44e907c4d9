// Ends: which of them are a rank's own business, which end the job, and how a job is ended.
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "debugger.hpp"
#include "descendants.hpp"
#include "job.hpp"
#include "text.hpp"

namespace mpiexec {

namespace {
constexpr uint64_t second_ns = 1000000000;
constexpr uint64_t grace_ns = 2 * second_ns;      // from SIGTERM to SIGKILL
constexpr uint64_t wordless_ns = second_ns;       // see judge_wordless
constexpr uint64_t wrapper_ns = second_ns / 2;    // for sh, valgrind or python to pass on an exit status
constexpr uint64_t twice_ns = 5 * second_ns;      // between two Ctrl-C that kill the job
constexpr uint64_t cause_ns = second_ns / 20;     // see suspect
}  // namespace

void Job::signal_rank(const Rank& r, int signal) {
    if (r.pid <= 0) return;
    if (!r.in_our_group) {
        kill(-r.pid, signal);
        return;
    }
    if (r.reaped) return;
    for (pid_t pid : descendants(r.pid)) kill(pid, signal);
    kill(r.pid, signal);
}

// `typed`: the terminal has sent it to our process group already.
void Job::signal_all(int signal, bool typed) {
    for (Rank& r : ranks_) {
        if (typed && r.in_our_group) continue;
        // The kernel lets SIGTSTP stop nothing in a session that has no terminal.
        const int sent = signal == SIGTSTP && r.own_session ? SIGSTOP : signal;
        signal_rank(r, sent);
        // A rank under a wrapper may have left the process group.
        if (r.pidfd >= 0 && !r.gone) syscall(SYS_pidfd_send_signal, r.pidfd, sent, nullptr, 0);
    }
}

void Job::end_job(int status) {
    record(status);
    if (ending_) return;
    ending_ = true;
    tell_debugger_abort("mpiexec ends the job");
    kill_at_ns_ = now_ns() + grace_ns;
    signal_all(SIGTERM);
    signal_all(SIGCONT);  // a stopped rank must hear it
}

std::string Job::line_about(const Rank& r, const std::string& what) const {
    pid_t pid = r.mpi_pid > 0 ? r.mpi_pid : r.pid;
    return "rank " + std::to_string(r.start.rank) + " (pid " + std::to_string(pid) + ") " + what;
}

void Job::fail(const Rank& r, int status, const std::string& what) {
    if (!ending_) say("%s%s", line_about(r, what).c_str(), finished() ? "" : "; ending the job");
    suspicion_ = {};
    end_job(status);
}

// A rank that aborts, or leaves with an error, may do so because another one was killed a moment ago: it saw that before
// the kernel had buried the other. So a killed rank that shows up now is named instead.
void Job::suspect(const Rank& r, int status, const std::string& what) {
    if (ending_ || suspicion_.at_ns) return;
    suspicion_ = {line_about(r, what), status, now_ns() + cause_ns};
}

void Job::confirm_suspicion() {
    if (!suspicion_.at_ns || ending_) return;
    say("%s%s", suspicion_.line.c_str(), finished() ? "" : "; ending the job");
    int status = suspicion_.status;
    suspicion_ = {};
    end_job(status);
}

void Job::on_signals() {
    signalfd_siginfo s;
    while (read(signal_fd_, &s, sizeof s) == ssize_t(sizeof s)) {
        int signal = int(s.ssi_signo);
        if (signal == SIGCHLD) continue;
        bool typed = s.ssi_code == SI_KERNEL;
        // An interactive program lives through many a Ctrl-C; two at once are meant for the job.
        if (signal == SIGINT && typed && now_ns() > interrupted_at_ns_ + twice_ns) interrupts_ = 0;
        if (signal == SIGINT) interrupted_at_ns_ = now_ns();
        if (signal == SIGINT && ++interrupts_ > 1) {
            if (interrupts_ == 2) say("interrupted twice; killing the job");
            end_job(128 + SIGINT);
            killed_ = true;
            signal_all(SIGKILL);
            continue;
        }
        if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT) user_signal_ = signal;
        if (signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) {
            signal_all(SIGTSTP, typed);
            if (typed) stop_with(signal);
            else kill(getpid(), SIGSTOP);
        } else {
            signal_all(signal, typed);
        }
    }
    reap();
}

// The terminal stops its job: mpiexec too, so that the shell sees it. Where there is no shell to continue it, the kernel does not stop it; then
// the ranks go on, too.
void Job::stop_with(int signal) {
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, signal);
    kill(getpid(), signal);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    if (sigpending(&pending) == 0 && !sigismember(&pending, SIGCONT)) signal_all(SIGCONT);
}

// Of a job that failed nothing stays: not what a rank started in the background, nor what has left its process group.
void Job::end_what_is_left() {
    uint64_t kill_at_ns = killed_ ? 0 : now_ns() + grace_ns, give_up_ns = now_ns() + 2 * grace_ns;
    for (bool first = true; now_ns() < give_up_ns; first = false) {
        bool now = now_ns() >= kill_at_ns, any = false;
        for (pid_t pid : descendants(getpid(), before_us_)) {
            any |= kill(pid, now ? SIGKILL : first ? SIGTERM : 0) == 0;  // not those of another user
            if (!now && first) kill(pid, SIGCONT);
        }
        if (!any) return;
        usleep(2000);
        while (waitpid(-1, nullptr, WNOHANG) > 0) {}
    }
}

// A rank that was killed leaves the terminal as it had it: without echo, or in the hands of a process group that is no more.
void Job::restore_terminal() {
    pid_t foreground = tcgetpgrp(0);
    if (foreground > 0 && foreground != getpgrp() && kill(-foreground, 0) != 0 && errno == ESRCH) tcsetpgrp(0, foreground = getpgrp());
    if (foreground == getpgrp()) tcsetattr(0, TCSANOW, &terminal_);
}

void Job::reap() {
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0) return;
        for (Rank& r : ranks_) {
            if (r.pid != pid) continue;
            // Its last words may have come after the poll.
            hear_launch_socket();
            if (r.link >= 0) hear_rank(r);
            r.reaped = true;
            r.wait_status = status;
            if (r.attached && r.mpi_pid == pid) r.gone = true;
            judge(r);
        }
    }
}

void Job::mpi_process_ended(Rank& r) {
    if (r.link >= 0) hear_rank(r);
    if (r.pidfd >= 0) close(r.pidfd);
    r.pidfd = -1;
    if (r.gone) return;
    r.gone = true;
    if (r.finalized || ending_) return;
    if (r.reaped) judge(r);
    else r.lost_at_ns = now_ns() + wrapper_ns;
}

// Called when the process that mpiexec started has ended, or after it the MPI process under it.
void Job::judge(Rank& r) {
    if (ending_) return;
    r.lost_at_ns = 0;
    int w = r.wait_status;
    if (WIFSIGNALED(w)) {
        int signal = WTERMSIG(w);
        if (signal == user_signal_) {
            // All ranks were sent it; give the others the time to end by it too.
            record(128 + signal);
            if (!quiet_end_at_ns_) quiet_end_at_ns_ = now_ns() + grace_ns;
            return;
        }
        std::string meaning = signal_meaning(signal);
        fail(r, 128 + signal, "was killed by signal " + std::to_string(signal) + " (" + signal_name(signal) +
             (meaning.empty() ? ")" : ": " + meaning + ")"));
        return;
    }
    int code = WEXITSTATUS(w);
    std::string ended = "exited with status " + std::to_string(code);
    // What shells make of a signal.
    if (code > 128 && code <= 128 + 31) ended += " (128 + " + std::to_string(code - 128) + ", " + signal_name(code - 128) + ")";
    if (user_signal_ && code == 128 + user_signal_) {
        record(code);
        if (!quiet_end_at_ns_) quiet_end_at_ns_ = now_ns() + grace_ns;
        return;
    }
    if (r.attached && r.running()) return;  // a wrapper left; the MPI process goes on
    if (r.attached && !r.finalized) {
        if (!r.aborted) suspect(r, code ? code : 1, ended + " without calling MPI_Finalize");
        return;
    }
    record(code);
    if (!r.attached) judge_wordless();
}

// Ranks that ended without a word to MPI. A job of plain programs may do that; each exit status counts. In an MPI job the
// others would wait for them for ever. Where it is not yet known which of the two this is, a failure is given some time.
void Job::judge_wordless() {
    bool mpi = false, others = false;
    const Rank* wordless = nullptr;
    for (const Rank& r : ranks_) {
        if (r.attached && !r.finalized) mpi = true;
        if (r.pid > 0 && r.running()) others = true;
        if (!r.attached && r.reaped && (!wordless || (WEXITSTATUS(r.wait_status) && !WEXITSTATUS(wordless->wait_status))))
            wordless = &r;
    }
    if (!wordless || !others) return;
    int code = WEXITSTATUS(wordless->wait_status);
    std::string ended = "exited with status " + std::to_string(code) + " without calling MPI_Init";
    if (mpi) {
        suspect(*wordless, code ? code : 1, ended + ", and others wait for it");
    } else if (code) {
        if (!wordless_at_ns_) wordless_at_ns_ = now_ns() + wordless_ns;
        else if (now_ns() >= wordless_at_ns_) fail(*wordless, code, ended);
    }
}

}  // namespace mpiexec
