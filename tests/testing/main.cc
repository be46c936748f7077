// The main function of programs that hold several test files.
//   PROGRAM [--file=tests/engine/config/config_test.cc] [GoogleTest's flags]
// With --file only the tests of that file run; that there are none is an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

constexpr std::string_view kFile = "--file=";

// Matches what `path`, a file's end, defines.
std::string FilterOf(std::string_view path) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (!std::string_view(test.file()).ends_with(path)) continue;
      filter.append(suite.name()).append(".").append(test.name()).append(":");
    }
  }
  return filter;
}

}  // namespace

// For the thread sanitizer, which does not see how Abseil, a library that is built without it,
// counts the references to a status: who drops the last one seems to race with who read the
// message.
extern "C" const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "race:absl::*::Status::Unref\n";
}

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (argc > 1 && std::string_view(argv[1]).starts_with(kFile)) {
    const std::string filter = FilterOf(std::string_view(argv[1]).substr(kFile.size()));
    if (filter.empty()) {
      std::fprintf(stderr, "no tests of %s in this program\n", argv[1] + kFile.size());
      return 1;
    }
    GTEST_FLAG_SET(filter, filter);
  }
  return RUN_ALL_TESTS();
}
