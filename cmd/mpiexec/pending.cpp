// Time is up: every rank is asked what it waits for, and what they say is told before the job is ended. A rank answers from
// its own waiting loop (p2p/pending.cpp), so one that computes does not; then the CPU time it used meanwhile is told.
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "job.hpp"
#include "text.hpp"

namespace mpiexec {
namespace {

constexpr uint64_t patience_ns = 2000000000;        // a waiting rank looks every 0.1 s, later on a busy machine
constexpr uint64_t other_threads_ns = 200000000;    // of a rank that has answered

// What the kernel knows of a process that does not answer.
Activity activity_of(pid_t pid) {
    Activity a;
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(in, line);
    size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) return a;
    std::istringstream fields(line.substr(name_end + 1));
    std::string field;
    fields >> a.state;                             // the third field
    for (int i = 4; i < 14; i++) fields >> field;  // utime and stime are the 14th and 15th
    double user = 0, system = 0;
    fields >> user >> system;
    a.cpu_s = (user + system) / double(sysconf(_SC_CLK_TCK));
    // Of the main thread: nanoseconds on a CPU, and ready but waiting for one. Not every kernel counts them.
    std::ifstream schedule("/proc/" + std::to_string(pid) + "/schedstat");
    double ran = 0, waited = 0;
    if (schedule >> ran >> waited) a.kept_waiting_s = waited / 1e9;
    return a;
}

std::string percent(double share) { return std::to_string(int(std::max(share, 0.0) * 100 + 0.5)) + " %"; }

// What a rank does that was asked `seconds` ago and has not answered.
std::string silence(const Activity& then, const Activity& now, double seconds) {
    double used = (now.cpu_s - then.cpu_s) / seconds, kept_waiting = (now.kept_waiting_s - then.kept_waiting_s) / seconds;
    std::string cpu = "it used " + percent(used) + " of a CPU while it was asked";
    if (now.state == 'T' || now.state == 't')
        return "is stopped (by SIGSTOP, a terminal or a debugger), so it cannot say what it does; SIGCONT lets it go on";
    if (now.state == 'D') return "waits in the kernel, for a disk or a file server as a rule; " + cpu;
    if (used < 0.5 && (kept_waiting > 0.5 || now.state == 'R'))
        return "did not get to answer: it is ready to run, but other processes have the CPUs; " + cpu;
    return std::string("does not wait in MPI: it ") + (used < 0.5 ? "sleeps, or waits for something else; " : "computes; ") + cpu;
}

}  // namespace

void Job::time_is_up() {
    record(124);
    time_limit_ns_ = 0;
    say("the job ran into its time limit of %d s; ending it. What its ranks do:", plan_.timeout_s);
    bool any = false;
    for (Rank& r : ranks_) {
        if (r.link < 0 || r.finalized || r.gone) continue;
        weft::boot::Question q{weft::boot::protocol_magic, weft::boot::Say::question};
        r.asked = ::send(r.link, &q, sizeof q, MSG_NOSIGNAL | MSG_DONTWAIT) == ssize_t(sizeof q);
        r.when_asked = activity_of(r.mpi_pid);
        any |= r.asked;
    }
    answers_due_ns_ = now_ns() + (any ? patience_ns : 0);
}

void Job::hear_answer(Rank& r, const char* text) {
    r.answers.push_back(text);
    bool all = std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& k) { return !k.asked || !k.answers.empty(); });
    if (all) answers_due_ns_ = std::min(answers_due_ns_, now_ns() + other_threads_ns);
}

void Job::tell_answers() const {
    uint64_t asked_ns = answers_due_ns_ - patience_ns;  // true as long as an answer is missing
    for (const Rank& r : ranks_) {
        if (r.asked && r.answers.empty()) {
            say("%s", line_about(r, silence(r.when_asked, activity_of(r.mpi_pid), double(now_ns() - asked_ns) / 1e9)).c_str());
        } else if (r.answers.empty()) {
            say("%s", line_about(r, !r.running() ? "has ended" : !r.attached ? "has not called MPI_Init" :
                                    r.finalized ? "has called MPI_Finalize" : "cannot be asked").c_str());
        }
        for (const std::string& answer : r.answers) {
            std::istringstream lines(answer);
            std::string line;
            for (bool first = true; std::getline(lines, line); first = false)
                say("%s", first ? line_about(r, "is " + line).c_str() : line.c_str());
        }
    }
}

}  // namespace mpiexec
