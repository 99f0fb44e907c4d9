#include "obj/settings.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>

using namespace weft;
using namespace weft::obj;

namespace {

struct Environment {
    Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
    ~Environment() { unsetenv(name_); }
    const char* name_;
};

TEST(Settings, TheTableIsSane) {
    std::set<std::string> names;
    EXPECT_LE(settings_count, 60);
    for (int i = 0; i < settings_count; ++i) {
        const Setting& s = settings_table[i];
        EXPECT_TRUE(names.insert(s.name).second) << s.name;
        EXPECT_EQ(strncmp(s.name, "WEFT_", 5), 0);
        EXPECT_LE(s.least, s.initial) << s.name;
        EXPECT_LE(s.initial, s.most) << s.name;
        EXPECT_GT(strlen(s.what), 10u) << s.name;
        EXPECT_EQ(strncmp(s.evidence, "docs/", 5), 0) << s.name;
    }
}

TEST(Settings, DefaultsThenEnvironment) {
    Settings s;
    ASSERT_EQ(read_settings(&s), Err::ok);
    EXPECT_EQ(s.cma, 1);
    Environment credit("WEFT_CREDIT", "3M"), cma("WEFT_CMA", "off"), large("WEFT_LARGE", "split");
    ASSERT_EQ(read_settings(&s), Err::ok);
    EXPECT_EQ(s.credit, 3 << 20);
    EXPECT_EQ(s.cma, 0);
    EXPECT_EQ(s.large, 2);
    Environment policies("WEFT_POLICY", "guard=on,pool_cap=7");
    ASSERT_EQ(read_settings(&s), Err::ok);
    EXPECT_EQ(s.guard, 1);
    EXPECT_EQ(s.pool_cap, 7);
    EXPECT_EQ(s.pool, 0);
    for (int i = 0; i < settings_count; ++i) {
        char value[32];
        const char* origin;
        ASSERT_EQ(describe_setting(i, value, &origin), Err::ok);
        if (settings_table[i].field == &Settings::large) {
            EXPECT_STREQ(value, "split");
            EXPECT_STREQ(origin, "environment");
        }
        if (settings_table[i].field == &Settings::fragment) {
            EXPECT_STREQ(origin, "default");
        }
    }
}

// A file of this content, which WEFT_TUNED names.
struct TunedFile {
    explicit TunedFile(const char* content) : name_("/tmp/weft-settings-" + std::to_string(getpid())), variable_("WEFT_TUNED", name_.c_str()) {
        std::ofstream(name_) << content;
    }
    ~TunedFile() { unlink(name_.c_str()); }
    std::string name_;
    Environment variable_;
};

TEST(Settings, AFileSetsWhatTheEnvironmentLeavesAlone) {
    const TunedFile file("# measured somewhere\n\nWEFT_MAPPED_MIN=4K\nWEFT_MAPPED_BOTH=32768  # a comment\nWEFT_CREDIT=1M\nWEFT_POLICY.pool=sender");
    const Environment credit("WEFT_CREDIT", "3M");
    Settings s;
    ASSERT_EQ(read_settings(&s), Err::ok) << fail_text();
    EXPECT_EQ(s.mapped_min, 4 << 10);
    EXPECT_EQ(s.mapped_both, 32 << 10);
    EXPECT_EQ(s.mapped_block, 8 << 10);
    EXPECT_EQ(s.credit, 3 << 20);
    EXPECT_EQ(s.pool, 1);
    for (int i = 0; i < settings_count; ++i) {
        char value[32];
        const char* origin;
        ASSERT_EQ(describe_setting(i, value, &origin), Err::ok);
        if (settings_table[i].field == &Settings::mapped_min) {
            EXPECT_STREQ(value, "4096");
            EXPECT_STREQ(origin, "file");
        }
        if (settings_table[i].field == &Settings::credit) {
            EXPECT_STREQ(origin, "environment");
        }
    }
}

TEST(Settings, AFileThatSetsNothingIsAnError) {
    Settings s;
    for (const char* bad : {"WEFT_MAPPED_LEAST=4K\n", "WEFT_MAPPED_MIN\n", "\n=3\n", "WEFT_MAPPED_MIN=much\n", "WEFT_MAPPED_MIN=1\n"}) {
        const TunedFile file(bad);
        EXPECT_EQ(read_settings(&s), Err::arg) << bad;
        EXPECT_NE(strstr(fail_text(), "allowed"), nullptr) << fail_text();
    }
    const Environment none("WEFT_TUNED", "/nonexistent/file");
    EXPECT_EQ(read_settings(&s), Err::arg);
    EXPECT_NE(strstr(fail_text(), "/nonexistent/file"), nullptr) << fail_text();
    const TunedFile large(std::string(10'000, '#').c_str());
    EXPECT_EQ(read_settings(&s), Err::arg);
}

TEST(Settings, BadValuesNameTheVariableTheValueAndWhatIsAllowed) {
    const char* bad[][2] = {{"WEFT_CMA", "perhaps"}, {"WEFT_CREDIT", "-1"}, {"WEFT_CREDIT", "4X"}, {"WEFT_CREDIT", "9999999G"},
                            {"WEFT_POLICY", "pool=mine"}, {"WEFT_POLICY", "swimming=yes"}, {"WEFT_POLICY", "guard"},
                            {"WEFT_INLINE_MAX", "49"}, {"WEFT_FRAGMENT", ""}, {"WEFT_LARGE", "pie"}};
    for (auto& [name, value] : bad) {
        Environment e(name, value);
        Settings s;
        if (*value == 0) {
            EXPECT_EQ(read_settings(&s), Err::ok) << "an empty variable is an unset one";
            continue;
        }
        ASSERT_EQ(read_settings(&s), Err::arg) << name << "=" << value;
        EXPECT_NE(strstr(fail_text(), name), nullptr);
        EXPECT_NE(strstr(fail_text(), value), nullptr);
        EXPECT_NE(strstr(fail_text(), "allowed"), nullptr);
    }
}

}  // namespace
