#include "job.hpp"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "binding.hpp"
#include "descendants.hpp"
#include "machine.hpp"
#include "text.hpp"

namespace mpiexec {

uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

Job::Job(const Plan& plan, std::vector<Start> starts) : plan_(plan) {
    ranks_.resize(starts.size());
    for (size_t i = 0; i < starts.size(); i++) ranks_[i].start = std::move(starts[i]);
    while (getrandom(&job_id_, sizeof job_id_, 0) < 0 && errno == EINTR) {}
    if (job_id_ == 0) job_id_ = 1;
}

int Job::run() {
    if (plan_.timeout_s > 0) time_limit_ns_ = now_ns() + uint64_t(plan_.timeout_s) * 1000000000u;
    cpus_ = int(allowed_cpus().size());

    // What is ignored stays ignored (nohup, a shell's background job); the rest is heard by the signalfd.
    sigset_t heard;
    sigemptyset(&heard);
    for (int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT}) {
        struct sigaction now;
        if (sigaction(s, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&heard, s);
    }
    sigaddset(&heard, SIGCHLD);
    sigset_t blocked = heard;
    for (int s : {SIGPIPE, SIGTTIN, SIGTTOU}) sigaddset(&blocked, s);
    before_us_ = own_children();
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // so that what ranks leave behind is found
    has_terminal_ = tcgetattr(0, &terminal_) == 0;
    sigprocmask(SIG_BLOCK, &blocked, &inherited_.mask);
    signal(SIGCHLD, SIG_DFL);  // an inherited SIG_IGN would reap our ranks behind our back
    signal_fd_ = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);

    getrlimit(RLIMIT_NOFILE, &inherited_.files);
    rlimit many = inherited_.files;
    many.rlim_cur = many.rlim_max;
    setrlimit(RLIMIT_NOFILE, &many);
    if (many.rlim_max < files_needed()) {
        say("%zu ranks take %zu open files of mpiexec, and the limit is %zu (ulimit -n)", ranks_.size(), files_needed(),
            size_t(many.rlim_max));
        return 1;
    }

    if (signal_fd_ < 0 || !open_door()) {
        say("cannot make the sockets that ranks call: %s (errno %d)", strerror(errno), errno);
        return 1;
    }
    start_all();
    while (!finished()) poll_once();
    confirm_suspicion();
    drain_output();
    if (status_ != 0) end_what_is_left();
    if (has_terminal_ && status_ > 128) restore_terminal();
    if (plan_.all_exit_codes) {
        for (const Rank& r : ranks_)
            say("rank %d: %s %d", r.start.rank, WIFSIGNALED(r.wait_status) ? "signal" : "exit status",
                WIFSIGNALED(r.wait_status) ? WTERMSIG(r.wait_status) : WEXITSTATUS(r.wait_status));
    }
    return status_;
}

// A socket and a lifeline per rank, two pipes where its lines are labelled, and some of our own.
size_t Job::files_needed() const {
    size_t per_rank = plan_.label.empty() && !plan_.timestamp ? 2 : 4;
    return ranks_.size() * per_rank + 32;
}

bool Job::finished() const {
    for (const Rank& r : ranks_)
        if (r.pid > 0 && r.running()) return false;
    return true;
}

void Job::poll_once() {
    enum class From { signals, launch_socket, listener, out, err, stranger, link, pidfd, lines };
    struct Source {
        From from;
        Rank* rank = nullptr;
        LineReader* reader = nullptr;
    };
    static std::vector<pollfd> polls;
    static std::vector<Source> sources;
    polls.clear();
    sources.clear();
    auto watch = [&](int fd, short events, Source s) {
        polls.push_back({fd, events, 0});
        sources.push_back(s);
    };
    watch(signal_fd_, POLLIN, {From::signals});
    watch(launch_[0], POLLIN, {From::launch_socket});
    watch(listener_, POLLIN, {From::listener});
    if (out_.wants()) watch(out_.fd(), POLLOUT, {From::out});
    if (err_.wants()) watch(err_.fd(), POLLOUT, {From::err});
    for (int s : strangers_) watch(s, POLLIN, {From::stranger});
    for (Rank& r : ranks_) {
        if (r.link >= 0) watch(r.link, POLLIN, {From::link, &r});
        if (r.pidfd >= 0) watch(r.pidfd, POLLIN, {From::pidfd, &r});
        for (LineReader* reader : {r.out.get(), r.err.get()})
            if (reader && reader->fd() >= 0 && !reader->sink()->full())
                watch(reader->fd(), POLLIN, {From::lines, nullptr, reader});
    }

    if (poll(polls.data(), polls.size(), next_timeout_ms()) > 0) {
        // Words before deaths: what a rank said before it ended explains the end.
        for (size_t i = 0; i < polls.size(); i++) {
            if (!polls[i].revents) continue;
            switch (sources[i].from) {
                case From::launch_socket: hear_launch_socket(); break;
                case From::listener: hear_listener(); break;
                case From::stranger: hear_stranger(polls[i].fd); break;
                case From::link: if (sources[i].rank->link == polls[i].fd) hear_rank(*sources[i].rank); break;
                case From::out: out_.write_some(); break;
                case From::err: err_.write_some(); break;
                case From::lines: sources[i].reader->read_some(); break;
                case From::signals: case From::pidfd: break;
            }
        }
        for (size_t i = 0; i < polls.size(); i++)
            if (polls[i].revents && sources[i].from == From::pidfd) mpi_process_ended(*sources[i].rank);
        if (polls[0].revents) on_signals();
    }
    timers();
}

void Job::drain_output() {
    // What the ranks wrote before they ended is in the pipes; a background process that still holds one gets no more.
    for (Rank& r : ranks_) {
        for (LineReader* reader : {r.out.get(), r.err.get()}) {
            while (reader && reader->fd() >= 0) {
                pollfd p{reader->fd(), POLLIN, 0};
                if (poll(&p, 1, 0) != 1) break;
                reader->read_some();
                for (Sink* sink : {&out_, &err_}) flush(sink, true);
            }
            if (reader) reader->finish();
        }
    }
    for (Sink* sink : {&out_, &err_}) flush(sink, false);
    tell_of_lost_output();
}

// Output that could not be written: it ends the job, once, and is never a success.
void Job::tell_of_lost_output() {
    if (out_.broken() && !told_of_out_) {
        told_of_out_ = true;
        bool closed = out_.error() == EPIPE;
        const char* then = ending_ || finished() ? "" : "; ending the job";
        if (closed && !*then) return record(128 + SIGPIPE);  // `mpiexec ... | head` of a job that has ended
        if (closed) say("stdout was closed%s", then);
        else say("cannot write to stdout: %s (errno %d)%s", strerror(out_.error()), out_.error(), then);
        if (*then) end_job(closed ? 128 + SIGPIPE : 1);
        else record(1);
    }
    if (err_.broken() && err_.error() != EPIPE) record(1);
}

// Writes until the sink is empty, or only until it is no longer full. A second Ctrl-C ends the wait.
void Job::flush(Sink* sink, bool only_while_full) {
    while (sink->wants() && (!only_while_full || sink->full())) {
        pollfd p[2] = {{sink->fd(), POLLOUT, 0}, {signal_fd_, POLLIN, 0}};
        if (poll(p, 2, -1) < 0) continue;
        if (p[0].revents) sink->write_some();
        if (p[1].revents) on_signals();
        if (interrupts_ > 1) return;
    }
}

int Job::next_timeout_ms() const {
    uint64_t next = UINT64_MAX;
    auto consider = [&](uint64_t at) { if (at && at < next) next = at; };
    if (!ending_) consider(time_limit_ns_), consider(answers_due_ns_);
    if (ending_ && !killed_) consider(kill_at_ns_);
    if (!ending_) consider(wordless_at_ns_), consider(quiet_end_at_ns_), consider(suspicion_.at_ns);
    for (const Rank& r : ranks_) consider(r.lost_at_ns);
    uint64_t now = now_ns();
    return next == UINT64_MAX ? -1 : next <= now ? 0 : int(std::min<uint64_t>((next - now + 999999) / 1000000, 60000));
}

void Job::timers() {
    uint64_t now = now_ns();
    if (time_limit_ns_ && !ending_ && now >= time_limit_ns_) time_is_up();
    if (answers_due_ns_ && !ending_ && now >= answers_due_ns_) {
        tell_answers();
        end_job(status_);
    }
    if (suspicion_.at_ns && now >= suspicion_.at_ns) confirm_suspicion();
    if (quiet_end_at_ns_ && !ending_ && now >= quiet_end_at_ns_) end_job(0);
    if (wordless_at_ns_ && !ending_ && now >= wordless_at_ns_) {
        judge_wordless();
        wordless_at_ns_ = 0;
    }
    if (ending_ && !killed_ && now >= kill_at_ns_) {
        killed_ = true;
        signal_all(SIGKILL);
    }
    for (Rank& r : ranks_) {
        if (!r.lost_at_ns || now < r.lost_at_ns) continue;
        r.lost_at_ns = 0;
        if (!ending_)
            fail(r, 1, "ended without calling MPI_Finalize (its exit status went to process " + std::to_string(r.pid) + ")");
    }
    tell_of_lost_output();
}

}  // namespace mpiexec
