#include "relay.hpp"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

namespace mpiexec {

void Sink::put(const std::string& text) {
    if (error_) return;
    bytes_ += text.size();
    if (!queue_.empty() && queue_.back().size() + text.size() <= 1 << 16) queue_.back() += text;
    else queue_.push_back(text);
}

void Sink::write_some() {
    if (queue_.empty() || error_) return;
    const std::string& front = queue_.front();
    size_t n = std::min<size_t>(front.size() - offset_, PIPE_BUF);
    ssize_t w = write(fd_, front.data() + offset_, n);
    if (w < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (w < 0) {
        error_ = errno;
        queue_.clear();
        bytes_ = 0;
        return;
    }
    offset_ += size_t(w);
    bytes_ -= size_t(w);
    if (offset_ == front.size()) {
        queue_.pop_front();
        offset_ = 0;
    }
}

void LineReader::emit(const char* line, size_t bytes) {
    std::string text;
    text.reserve(bytes + label_.size() + 32);
    if (timestamp_) {
        timespec t;
        tm local;
        clock_gettime(CLOCK_REALTIME, &t);
        localtime_r(&t.tv_sec, &local);
        char stamp[48];
        size_t n = strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &local);
        snprintf(stamp + n, sizeof stamp - n, ".%03d ", int(t.tv_nsec / 1000000));
        text += stamp;
    }
    text += label_;
    text.append(line, bytes);
    text += '\n';
    sink_->put(text);
}

void LineReader::read_some() {
    static char buffer[1 << 16];
    constexpr size_t longest_line = 1 << 20;  // a longer one is cut, so that one rank cannot eat all memory
    ssize_t n = read(fd_, buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) {
        finish();
        return;
    }
    const char* p = buffer;
    const char* end = buffer + n;
    while (const char* newline = static_cast<const char*>(memchr(p, '\n', size_t(end - p)))) {
        if (partial_.empty()) {
            emit(p, size_t(newline - p));
        } else {
            partial_.append(p, size_t(newline - p));
            emit(partial_.data(), partial_.size());
            partial_.clear();
        }
        p = newline + 1;
    }
    partial_.append(p, size_t(end - p));
    if (partial_.size() > longest_line) {
        emit(partial_.data(), partial_.size());
        partial_.clear();
    }
}

void LineReader::finish() {
    if (!partial_.empty()) emit(partial_.data(), partial_.size());
    partial_.clear();
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
}

}  // namespace mpiexec
