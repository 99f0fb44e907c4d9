// Finds programs that touch a buffer which they have given away or freed: WEFT_POLICY=guard=on takes this process's access to it away,
// and a process that touches it all the same ends with a message that says where it did, and where it gave the buffer away. Included by
// owned.hpp alone; under the lane's guard, but for the handler of the signal, which only reads.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::heap {

class Guard {
public:
    // False when out of memory.
    bool open();
    void close();
    // From now on an access by this process to [data, data + bytes), which begins a page, ends it. Not `now`: from forbid_freed() on.
    void forbid_given(void* data, size_t bytes, int32_t to, int32_t tag, bool now);
    void forbid_freed(void* data, size_t bytes);
    void permit(void* data, size_t bytes);

private:
    // What is forbidden, and since which call.
    struct Record {
        uintptr_t at;         // 0: an empty record
        size_t bytes;
        int32_t to, tag;      // of a give
        bool given;           // else freed
        char place[256];      // of the call, as addr2line wants it
    };
    static constexpr size_t records = 4096;   // older ones are overwritten: then the message is shorter
    void note(void* data, size_t bytes, bool given, int32_t to, int32_t tag);
    static bool explain(void* guard, uintptr_t address, uintptr_t instruction);
    Record* find(uintptr_t address) const;
    Record* records_ = nullptr;
    size_t next_ = 0;
};

}  // namespace weft::heap
