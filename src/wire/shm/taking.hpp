// Which cache owns a ring's lines from one lap to the next. The reader may *take* each line that it has read, by storing to
// it, or *leave* it shared between its own cache and the writer's. On some processors a store to a line which this core wrote
// last, and another has read since, waits for that core before the next such store begins; a line that another core has taken
// is fetched ahead of its store, many at once. There, taking makes copies through the ring three to five times as fast
// (docs/experiments/006-taking-lines.md); elsewhere it is one store too many for each line. So both ways get a trial now and then.
//
// Owned by the reading end of one lane, and touched under its guard.
#pragma once
#include <cstdint>

#include "wire/shm/layout.hpp"

namespace weft::wire::shm {

struct Taking {
    enum Choice : uint8_t { automatic, leave, take };   // WEFT_TAKE

    bool now;   // lines read from now on are taken

    void start(Choice choice);
    // memcpy that takes the lines it reads.
    void copy(void* to, const void* from, size_t bytes) const;
    // The same past the caches (see weft::copy_past_caches); takes lines only if that is the way now.
    void copy_past_caches(void* to, const void* from, size_t bytes) const;
    // A chunk of `bytes` of `ring` has been read; `waiting`: its writer is at the next one, which is not there yet. Now, or
    // for tests at the time `ns`.
    WEFT_INLINE void read(const void* ring, uint32_t bytes, bool waiting, const uint64_t* ns = nullptr) {
        passed_ += bytes;
        if (WEFT_UNLIKELY(passed_ >= until_) && (waiting || awaited_ != nullptr)) look(ring, bytes, waiting, ns);
    }

    static constexpr uint64_t settle_bytes = 2 * bulk_bytes;        // after which lines of the other way are gone
    static constexpr uint64_t least_rest = uint64_t{256} << 20;      // between two trials, first
    static constexpr uint64_t most_rest = uint64_t{4} << 30;        // and when nothing has changed for long
    static constexpr uint32_t samples = 15;
    static constexpr uint32_t least_chunk = 8192;                   // smaller ones tell of other things

private:
    WEFT_COLD void look(const void* ring, uint32_t bytes, bool waiting, const uint64_t* ns);

    uint64_t passed_, until_;   // bytes read; those from which on time is taken
    uint64_t rest_;
    const void* awaited_;       // the ring whose next chunk the reader was waiting for at since_ns_
    uint64_t since_ns_;
    enum Trial : uint8_t { usual, other, again } trial_;   // whose samples are being taken
    bool wide_, widest_;        // the processor has AVX2; AVX-512
    uint32_t count_;
    uint64_t usual_, other_;    // what was found, ps per byte
    uint32_t pace_[samples];    // ps per byte, where the reader waited for the writer
};

}  // namespace weft::wire::shm
