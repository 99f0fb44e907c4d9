#include "debugger.hpp"

#include "text.hpp"

// Names, types and values are those of the MPIR process acquisition interface; debuggers look them up in the symbol table.
extern "C" {

struct MPIR_PROCDESC {
    const char* host_name;
    const char* executable_name;
    int pid;
};

enum { MPIR_NULL = 0, MPIR_DEBUG_SPAWNED = 1, MPIR_DEBUG_ABORTING = 2 };

#define MPIR_SYMBOL __attribute__((used, visibility("default")))

MPIR_SYMBOL MPIR_PROCDESC* MPIR_proctable = nullptr;
MPIR_SYMBOL int MPIR_proctable_size = 0;
MPIR_SYMBOL volatile int MPIR_being_debugged = 0;  // set by the debugger
MPIR_SYMBOL volatile int MPIR_debug_state = MPIR_NULL;
MPIR_SYMBOL const char* volatile MPIR_debug_abort_string = nullptr;
MPIR_SYMBOL int MPIR_i_am_starter = 0;       // its presence: this process is no rank
MPIR_SYMBOL int MPIR_partial_attach_ok = 0;  // its presence: ranks that nobody attaches to need no release

MPIR_SYMBOL __attribute__((noinline)) void MPIR_Breakpoint() { __asm__ volatile("" ::: "memory"); }
}

namespace mpiexec {

void tell_debugger(const std::vector<DebuggedProcess>& ranks) {
    static std::vector<std::string> programs;
    static std::vector<MPIR_PROCDESC> table;
    for (const DebuggedProcess& r : ranks) programs.push_back(r.program);
    for (size_t i = 0; i < ranks.size(); i++)
        table.push_back({host_name().c_str(), programs[i].c_str(), int(ranks[i].pid)});
    MPIR_proctable = table.data();
    MPIR_proctable_size = int(table.size());
    MPIR_debug_state = MPIR_DEBUG_SPAWNED;
    MPIR_Breakpoint();
}

void tell_debugger_abort(const char* why) {
    if (!MPIR_being_debugged) return;
    static std::string text;
    text = why;
    MPIR_debug_abort_string = text.c_str();
    MPIR_debug_state = MPIR_DEBUG_ABORTING;
    MPIR_Breakpoint();
}

}  // namespace mpiexec
