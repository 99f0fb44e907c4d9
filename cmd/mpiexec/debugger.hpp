// The debugger's face of mpiexec: the MPIR symbols, by which a debugger finds the processes of a job.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace mpiexec {

struct DebuggedProcess {
    pid_t pid;
    std::string program;
};

// Publishes the ranks in order and calls MPIR_Breakpoint. While a debugger holds mpiexec there, no rank gets past
// MPI_Init, because mpiexec does not answer its hello.
void tell_debugger(const std::vector<DebuggedProcess>& ranks);
// The job is being ended: the debugger may want to look before the ranks are gone.
void tell_debugger_abort(const char* why);

}  // namespace mpiexec
