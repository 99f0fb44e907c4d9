// Streams that pass through mpiexec: labelled output, whole lines only.
#pragma once
#include <deque>
#include <string>

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

}  // namespace mpiexec
