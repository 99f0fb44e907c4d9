// The running job: starts the ranks, hands each of them the job when it says hello, watches them, ends them.
// One thread and one poll loop; signals arrive by a signalfd, so nothing runs at an unexpected moment.
#pragma once
#include <poll.h>
#include <termios.h>

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "boot/boot.hpp"
#include "boot/protocol.hpp"
#include "os/shared_file.hpp"
#include "plan.hpp"
#include "relay.hpp"
#include "spawn.hpp"

namespace mpiexec {

// What the kernel says a process does (pending.cpp).
struct Activity {
    char state = '?';           // one letter, as in /proc
    double cpu_s = 0;           // time it has used
    double kept_waiting_s = 0;  // time its main thread was ready to run, but did not
};

struct Rank {
    Start start;
    pid_t pid = -1;         // the process mpiexec started
    bool in_our_group = false;  // of processes: rank 0 at a terminal; else it has a group of its own
    bool own_session = false;   // where there is no terminal, and a CPU for each rank
    bool reaped = false;
    int wait_status = 0;
    // The MPI process: `pid` itself, or a descendant (under sh, valgrind, python).
    bool attached = false, finalized = false, aborted = false;
    pid_t mpi_pid = -1;
    bool gone = false;      // it ended
    int link = -1;          // its private socket
    int pidfd = -1;         // readable when it ends; only where it is not `pid`
    int lifeline = -1;      // write end: closing it, or our death, kills the rank
    int attaches = 0;
    uint64_t lost_at_ns = 0;  // the MPI process ended, its wrapper has not yet
    std::unique_ptr<LineReader> out, err;
    // What it said when asked what it waits for, one answer per thread.
    bool asked = false;
    std::vector<std::string> answers;
    Activity when_asked;

    bool running() const { return !reaped || (attached && !gone && !finalized); }
};

class Job {
public:
    Job(const Plan& plan, std::vector<Start> starts);
    int run();  // the exit status of mpiexec

private:
    // job.cpp: the loop
    void poll_once();
    int next_timeout_ms() const;
    void timers();
    bool finished() const;
    size_t files_needed() const;
    void drain_output();
    void tell_of_lost_output();
    void flush(Sink* sink, bool only_while_full);
    // launch.cpp: starting
    bool open_door();
    bool make_heap();
    bool start_all();
    bool start_rank(Rank& r);
    std::vector<std::string> environment(const Rank& r) const;
    int open_output(const char* name);
    bool connect_streams(Rank& r, Spawn* s, std::vector<int>* close_after);
    // bootstrap.cpp: what ranks say
    void hear_launch_socket();
    void hear_listener();
    void hear_stranger(int fd);
    void hear_rank(Rank& r, bool until_finalized = false);
    void welcome(const weft::boot::Hello& h, int link);
    bool send_job(Rank& r, std::string* why);
    const weft::os::SharedFile& segment_of(int generation);
    bool key_of(int generation, unsigned char out[weft::boot::key_bytes]);
    int localities();
    void release_segments();
    // pending.cpp: what ranks wait for when time is up
    void time_is_up();
    void hear_answer(Rank& r, const char* text);
    void tell_answers() const;
    // watch.cpp: ends
    void on_signals();
    void reap();
    void mpi_process_ended(Rank& r);
    void judge(Rank& r);
    void judge_wordless();
    void fail(const Rank& r, int status, const std::string& what);
    void suspect(const Rank& r, int status, const std::string& what);
    void confirm_suspicion();
    std::string line_about(const Rank& r, const std::string& what) const;
    void end_job(int status);
    void signal_all(int signal, bool typed = false);
    void signal_rank(const Rank& r, int signal);
    void stop_with(int signal);
    void end_what_is_left();
    void restore_terminal();
    void record(int status) { if (status > status_) status_ = status; }

    const Plan& plan_;
    std::vector<Rank> ranks_;
    Inherited inherited_;
    int signal_fd_ = -1;
    int launch_[2] = {-1, -1};  // inherited by the ranks: [1]; heard here: [0]
    uint64_t launch_inode_ = 0;
    int listener_ = -1;
    int heap_ = -1;             // what malloc of all ranks allocates from; inherited by them
    uint64_t heap_inode_ = 0;
    std::string malloc_library_;  // that makes it do so
    std::string address_, cookie_;
    std::vector<int> strangers_;  // connected by name, hello not yet read
    std::vector<weft::os::SharedFile> segments_;  // one per generation
    std::vector<std::array<unsigned char, weft::boot::key_bytes>> keys_;  // likewise
    int localities_ = -1;         // a shared file with the Locality of every rank
    bool placed_ = false;
    uint64_t job_id_ = 0;
    int cpus_ = 1;                // that ranks may be on at once; a quota of CPU time does not lessen it: they run side by side until it is spent
    Sink out_{1}, err_{2};
    bool has_terminal_ = false;      // on stdin, which rank 0 inherits
    termios terminal_{};             // its modes before a rank could change them
    std::vector<pid_t> before_us_;   // children of the process that became mpiexec
    std::set<std::pair<dev_t, ino_t>> outputs_;  // files that this job has emptied

    struct Suspicion {
        std::string line;
        int status = 0;
        uint64_t at_ns = 0;  // 0: none
    } suspicion_;
    int status_ = 0;
    bool ending_ = false, killed_ = false, told_of_out_ = false;
    uint64_t time_limit_ns_ = 0, answers_due_ns_ = 0, kill_at_ns_ = 0, wordless_at_ns_ = 0, quiet_end_at_ns_ = 0;
    int user_signal_ = 0, interrupts_ = 0;
    uint64_t interrupted_at_ns_ = 0;
};

uint64_t now_ns();

}  // namespace mpiexec
