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

// User and system time of a process so far; 0 where it is gone.
double cpu_seconds(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(in, line);
    size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) return 0;
    std::istringstream fields(line.substr(name_end + 1));
    std::string field;
    for (int i = 3; i < 14; i++) fields >> field;  // state is the third field, utime and stime the 14th and 15th
    double user = 0, system = 0;
    fields >> user >> system;
    return (user + system) / double(sysconf(_SC_CLK_TCK));
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
        r.cpu_s = cpu_seconds(r.mpi_pid);
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
            double share = (cpu_seconds(r.mpi_pid) - r.cpu_s) / (double(now_ns() - asked_ns) / 1e9) * 100;
            say("%s", line_about(r, "does not wait in MPI: it computes or sleeps; it used " +
                                 std::to_string(int(std::max(share, 0.0) + 0.5)) + " % of a CPU while it was asked").c_str());
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
