// The steps of making a window, between which its processes, or its endpoints, tell each other what they bring. Used by create.cpp and
// endpoints.cpp. No lock; each step is the calling thread's own.
#pragma once
#include <cstdint>

#include "rma/window.hpp"

namespace weft::rma {

// What one process brings to a window, as all learn it.
struct Offer {
    char* base;
    int64_t bytes, disp_unit;
    Control* control;
    int32_t error;        // Err of its own call
    int32_t lanes;        // that its hints ask for
    bool reaches_all;     // shares memory with all others, as far as it can tell
    bool in_heap;         // its part and its control lie there
};

// What a call asks for.
struct Wanted {
    int32_t flavor;
    void* base;           // MPI_Win_create
    int64_t bytes, disp_unit;
    Info* info;
};

// One without anything yet. Err::no_mem.
Err take_window(Process&, Window** out);
// Makes what is this process's own, of a window that has its communicator. Whatever fails is in the offer.
Offer offer_of(Process&, Window&, const Wanted&);
// The error of the first process that has one, of `n`; this one's, `me`, is explained already.
Err first_error(const Offer* all, int32_t n, int32_t me);
// Decides, from what all have offered, how the window is accessed. If not by loads and stores, open_messages() follows.
void settle(const Process&, Window&, const Offer* all);
// The window is complete.
Win* announce(Window&);
// Frees the window and what the steps made, as far as they came. Local; its processes no longer access it.
void destroy(Process&, Window&);

}  // namespace weft::rma
