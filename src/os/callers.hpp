// Who called: the functions on this thread's stack, for messages to people. Slow; the first use loads the unwinder.
// p2p/ and the floors above it may include this; it knows nothing of MPI.
// It holds no lock; call it with none held, since the loader takes its own.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::os {

struct Entry {
    char function[64];  // the library's function that the program called; empty where the stack does not say
    char place[256];    // where: <file>+0x<address>, as addr2line wants them; empty where unknown
};

// The innermost function on the stack whose exported name begins with `prefix`, or with P and `prefix`: the name without the
// P, and where it was called. A wrapper of the same name around it (a PMPI tool) counts as the library.
void find_entry(const char* prefix, Entry* out);
// Writes where an instruction lies, as Entry::place; nothing where that is unknown.
void describe_place(uintptr_t address, char* out, size_t bytes);

}  // namespace weft::os
