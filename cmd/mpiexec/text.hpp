// Small text helpers of mpiexec: one line to stderr in one write, signal names, the host's name.
#pragma once
#include <string>

namespace mpiexec {

void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void die(int status, const char* format, ...) __attribute__((format(printf, 2, 3)));
[[noreturn]] void end_of_answer();       // after what was printed to stdout: status 0, or 1 where it could not be written
std::string signal_name(int signal);     // "SIGKILL"
const char* signal_meaning(int signal);  // "" or what it usually means
const std::string& host_name();

}  // namespace mpiexec
