// Streams that pass through mpiexec: labelled output, whole lines only, and stdin of rank 0 where it cannot be inherited.
#pragma once
#include <poll.h>

#include <deque>
#include <string>
#include <vector>

namespace mpiexec {

// Where labelled lines go: stdout or stderr of mpiexec. Never blocks and never sets O_NONBLOCK: it writes at most
// what a pipe that polls writable takes (PIPE_BUF).
class Sink {
public:
    explicit Sink(int fd) : fd_(fd) {}
    void put(const std::string& text);
    bool wants() const { return !queue_.empty() && !error_; }
    bool full() const { return bytes_ > 1 << 20 && !error_; }  // readers wait until it drains
    bool broken() const { return error_ != 0; }                 // nothing more can be written
    int error() const { return error_; }                        // why: EPIPE where its reader went away
    int fd() const { return fd_; }
    void write_some();

private:
    int fd_;
    std::deque<std::string> queue_;
    size_t offset_ = 0, bytes_ = 0;
    int error_ = 0;
};

// One output stream of one rank.
class LineReader {
public:
    LineReader(int fd, Sink* sink, std::string label, bool timestamp)
        : fd_(fd), sink_(sink), label_(std::move(label)), timestamp_(timestamp) {}
    int fd() const { return fd_; }  // -1 at end of file
    Sink* sink() const { return sink_; }
    void read_some();
    void finish();  // passes on an unfinished last line

private:
    void emit(const char* line, size_t bytes);
    int fd_;
    Sink* sink_;
    std::string label_;
    bool timestamp_;
    std::string partial_;
};

// A terminal's input for rank 0, which is in a background process group and must not read the terminal itself.
class StdinRelay {
public:
    bool open();              // makes the pipe; false and errno on failure
    int child_end() const { return ends_[0]; }
    void child_started();     // closes the child's end here
    bool active() const { return ends_[1] >= 0; }
    void add(std::vector<pollfd>* polls) const;
    void handle(const pollfd& p);
    bool foreground() const;  // may this process read the terminal now?

private:
    void close_all();
    int ends_[2] = {-1, -1};
    std::string pending_;
    bool eof_ = false;
};

}  // namespace mpiexec
