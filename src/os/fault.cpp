#include "os/fault.hpp"

#include <signal.h>
#include <ucontext.h>

namespace weft::os {
namespace {

struct Faults {
    Explain* explain;
    void* context;
    struct sigaction before;
    bool installed;
};
constinit Faults faults{};

void on_fault(int, siginfo_t* info, void* machine) {
    const auto* at = static_cast<const ucontext_t*>(machine);
    if (faults.explain != nullptr)
        (void)faults.explain(faults.context, reinterpret_cast<uintptr_t>(info->si_addr),
                             static_cast<uintptr_t>(at->uc_mcontext.gregs[REG_RIP]));
    // The instruction is run again, and the signal comes again, to whom it would have come.
    sigaction(SIGSEGV, &faults.before, nullptr);
    faults.installed = false;
}

}  // namespace

void explain_faults(Explain* explain, void* context) {
    faults.explain = explain;
    faults.context = context;
    if (explain == nullptr || faults.installed) return;
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    faults.installed = sigaction(SIGSEGV, &action, &faults.before) == 0;
}

}  // namespace weft::os
