// The library that belongs to this command, found beside it and asked through the names it exports.
#pragma once
#include <string>

namespace weft_cmd {

std::string here();  // the folder of this executable

class Library {
public:
    Library();
    bool loaded() const { return handle_ != nullptr; }
    const std::string& path() const { return path_; }
    const std::string& error() const { return error_; }
    template <typename F>
    F find(const char* name) const { return reinterpret_cast<F>(symbol(name)); }

private:
    void* symbol(const char* name) const;
    void* handle_ = nullptr;
    std::string path_, error_;
};

}  // namespace weft_cmd
