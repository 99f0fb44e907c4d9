// What a lane counts. WEFT_COUNTERS=1 prints it at MPI_Finalize, `weft info --counters` says what it means, MPI_T will read it. Included by
// lane.hpp and by those who list it; all under the lane's guard.
#pragma once
#include <cstdint>

#include "wire/shm/layout.hpp"

namespace weft::lane {

struct Counters {
    uint64_t sent_eager, sent_large;
    uint64_t received_by[wire::shm::movers];        // rendezvous, by wire::shm::Mover
    uint64_t assisted;
    uint64_t pipelined_bytes, cma_bytes, mapped_bytes;
    uint64_t unexpected_count, unexpected_bytes, unexpected_high_bytes;
    uint64_t sleeps;
    uint64_t other_cells;
};

struct CounterRow {
    const char* name;
    const char* what;
};

// In the order of Counters. Each message between two ranks is sent inline, eagerly or by rendezvous, and each rendezvous is received by
// one mover: so over all ranks of a job sent_inline + sent_eager + sent_large are all messages, and sent_large is the sum of received_*.
inline constexpr CounterRow counter_rows[] = {
    {"sent_eager", "messages sent before they were matched, in chunks"},
    {"sent_large", "messages sent by rendezvous"},
    {"received_pipelined", "rendezvous received by pipelined copy, two copies"},
    {"received_split_cma", "rendezvous received by one copy through the kernel, by both sides"},
    {"received_mapped_get", "rendezvous that the receiver copied from where they lay"},
    {"received_mapped_both", "rendezvous that both sides may copy from where they lie to where they belong"},
    {"assisted", "of the last and of split CMA: those of which the sender copied a part"},
    {"pipelined_bytes", "bytes received by pipelined copy"},
    {"cma_bytes", "bytes that this rank copied through the kernel"},
    {"mapped_bytes", "bytes that this rank copied from where they lay"},
    {"unexpected_count", "messages that wait here for their receive"},
    {"unexpected_bytes", "bytes of these"},
    {"unexpected_high_bytes", "the most that they ever were"},
    {"sleeps", "times that a waiting thread has slept"},
    {"other_cells", "cells sent for other ends than an inline message"},
};
static_assert(sizeof counter_rows / sizeof *counter_rows == sizeof(Counters) / sizeof(uint64_t));
inline constexpr CounterRow sent_inline_row = {"sent_inline", "messages sent in their header's cache line"};

}  // namespace weft::lane
