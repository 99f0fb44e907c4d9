#include "text.hpp"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace mpiexec {

static void say_line(const char* format, va_list ap) {
    char line[2048] = "mpiexec: ";
    constexpr int head = 9;
    int n = vsnprintf(line + head, sizeof line - head - 1, format, ap);
    n = n < 0 ? head : n + head > int(sizeof line) - 2 ? int(sizeof line) - 2 : n + head;
    line[n++] = '\n';
    if (write(2, line, size_t(n)) < 0) return;  // stderr is closed: there is nobody to tell
}

void say(const char* format, ...) {
    va_list ap;
    va_start(ap, format);
    say_line(format, ap);
    va_end(ap);
}

void die(int status, const char* format, ...) {
    va_list ap;
    va_start(ap, format);
    say_line(format, ap);
    va_end(ap);
    _exit(status);
}

void end_of_answer() {
    bool wrote = !ferror(stdout);
    if (fclose(stdout) != 0 || !wrote) die(1, "cannot write to stdout: %s (errno %d)", strerror(errno), errno);
    _exit(0);
}

std::string signal_name(int signal) {
    const char* abbreviation = sigabbrev_np(signal);
    return abbreviation ? std::string("SIG") + abbreviation : "an unnamed signal";
}

const char* signal_meaning(int signal) {
    switch (signal) {
        case SIGSEGV: return "it touched memory that is not its own";
        case SIGBUS: return "it touched memory without backing; shared memory or a file may be full or truncated";
        case SIGFPE: return "an arithmetic error such as an integer division by zero";
        case SIGILL: return "an instruction this CPU does not have";
        case SIGABRT: return "it called abort, often by a failed assertion";
        case SIGKILL: return "from outside; often the kernel's, out of memory";
        case SIGXFSZ: return "a file, or the memory that the ranks share, would be larger than the limit (ulimit -f)";
        case SIGXCPU: return "its CPU time limit";
        case SIGPIPE: return "it wrote to a closed pipe";
        default: return "";
    }
}

const std::string& host_name() {
    static const std::string name = [] {
        char text[256];
        return gethostname(text, sizeof text) == 0 ? (text[sizeof text - 1] = 0, std::string(text)) : std::string("localhost");
    }();
    return name;
}

}  // namespace mpiexec
