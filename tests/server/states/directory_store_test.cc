#include "server/states/directory_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/testing/state_stores.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::directory_store_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class DirectoryStoreTest : public testing::Test {
 protected:
  std::unique_ptr<StateStore> Open(int64_t most_bytes = 1 << 20) {
    return OpenDirectoryStore(Root(), most_bytes, metrics_.metrics(), [this] { return now_; })
        .value();
  }
  std::string Root() const { return directory_.File("a/states"); }

  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(Root())) {
      if (!entry.is_directory()) files.push_back(entry.path());
    }
    return files;
  }

  // Says that a file was used so many seconds ago.
  void Used(const fs::path& path, int64_t ago) const {
    const timespec time{.tv_sec = now_ - ago, .tv_nsec = 0};
    const timespec times[] = {time, time};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  fs::path FileOf(const std::string& name) const {
    for (const fs::path& path : Files()) {
      if (path.filename().string().starts_with(HandleOf(name))) return path;
    }
    return {};
  }

  TemporaryDirectory directory_;
  StoreMetrics metrics_;
  int64_t now_ = UnixSeconds();
  const StateBytes file_ = SmallStateFile(5);
};

TEST_F(DirectoryStoreTest, IsSharedAndOutlastsTheProcess) {
  const auto one = Open(), two = Open();
  ASSERT_TRUE(one->Put("owner", HandleOf("a"), file_, seconds(60)).ok());
  EXPECT_EQ(**two->Get("owner", HandleOf("a")), *file_);
  EXPECT_EQ(two->List("owner")->size(), 1u);
  ASSERT_TRUE(two->Remove("owner", HandleOf("a")).ok());
  EXPECT_FALSE(one->Get("owner", HandleOf("a")).ok());
}

TEST_F(DirectoryStoreTest, AFileIsAStateFileForItsUserAlone) {
  ASSERT_TRUE(Open()->Put("key-1", HandleOf("a"), file_, seconds(60)).ok());
  const std::vector<fs::path> files = Files();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].string(), Root() + "/owner-6b65792d31/" + HandleOf("a") + "-" +
                                   std::to_string(now_ + 60) + ".safetensors");
  EXPECT_EQ(FileContent(files[0].string()), *file_);
  struct stat folder;
  ASSERT_EQ(stat(files[0].parent_path().c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777, 0700u);
}

TEST_F(DirectoryStoreTest, EvictsWhatWasNotUsedForLongest) {
  const auto store = Open(3 * std::ssize(*file_));
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(store->Put("o", HandleOf(name), file_, seconds(60)).ok());
    Used(FileOf(name), 10);
  }
  Used(FileOf("b"), 20);
  Used(FileOf("a"), 30);
  ASSERT_TRUE(store->Get("o", HandleOf("a")).ok());
  // Another process knows it too.
  ASSERT_TRUE(Open(3 * std::ssize(*file_))->Put("o", HandleOf("d"), file_, seconds(60)).ok());
  EXPECT_FALSE(store->Get("o", HandleOf("b")).ok());
  EXPECT_TRUE(store->Get("o", HandleOf("a")).ok());
  EXPECT_EQ(metrics_.Value("evictions_total"), 1);
}

TEST_F(DirectoryStoreTest, SkipsAndCountsWhatIsDamaged) {
  const auto store = Open();
  ASSERT_TRUE(store->Put("o", HandleOf("a"), file_, seconds(60)).ok());
  const std::string path = FileOf("a").string();
  std::string bytes = *file_;
  bytes[bytes.size() - 3] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_TRUE(absl::IsNotFound(store->Get("o", HandleOf("a")).status()));
  std::ofstream(path, std::ios::binary) << file_->substr(0, 100);
  EXPECT_TRUE(absl::IsNotFound(store->Get("o", HandleOf("a")).status()));
  EXPECT_EQ(metrics_.Value("damaged_total"), 2);
  EXPECT_EQ(metrics_.Value("misses_total"), 2);
  ASSERT_TRUE(store->Put("o", HandleOf("a"), file_, seconds(60)).ok());
  EXPECT_TRUE(store->Get("o", HandleOf("a")).ok());
}

TEST_F(DirectoryStoreTest, LeavesAloneWhatIsNotItsOwn) {
  const auto store = Open(2 * std::ssize(*file_));
  const std::string handle = HandleOf("a");
  ASSERT_TRUE(store->Put("o", handle, file_, seconds(60)).ok());
  const fs::path folder = Files()[0].parent_path();
  const std::string large(10 * file_->size(), 'x');
  const std::vector<std::string> names = {"notes.txt", handle, handle + ".safetensors",
                                          handle + "-x.safetensors", handle + "-1x.safetensors"};
  for (const std::string& name : names) std::ofstream(folder / name) << large;
  std::ofstream(Root() + "/readme") << large;
  fs::create_symlink("/etc/passwd",
                     folder / (HandleOf("b") + "-" + std::to_string(now_ + 9) + ".safetensors"));
  EXPECT_TRUE(absl::IsNotFound(store->Get("o", HandleOf("b")).status()));
  ASSERT_TRUE(store->Put("o", HandleOf("c"), file_, seconds(60)).ok());
  ASSERT_TRUE(store->Put("o", HandleOf("d"), file_, seconds(60)).ok());
  for (const std::string& name : names) EXPECT_TRUE(fs::exists(folder / name)) << name;
  EXPECT_TRUE(fs::exists(Root() + "/readme"));
  EXPECT_EQ(metrics_.Value("evictions_total"), 1);
  EXPECT_EQ(store->List("o")->size(), 2u);
}

TEST_F(DirectoryStoreTest, OldPartsOfWritersThatDiedGo) {
  ASSERT_TRUE(Open()->Put("o", HandleOf("a"), file_, seconds(60)).ok());
  const fs::path folder = Files()[0].parent_path();
  for (const char* name : {"1-1.tmp", "1-2.tmp"}) std::ofstream(folder / name) << "part";
  Used(folder / "1-1.tmp", 3600);
  Open();
  EXPECT_FALSE(fs::exists(folder / "1-1.tmp"));
  EXPECT_TRUE(fs::exists(folder / "1-2.tmp")) << "it may still be written";
}

TEST_F(DirectoryStoreTest, AWriterThatIsKilledLeavesWholeStates) {
  for (int round = 0; round < 5; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto store = Open();
      for (int i = 0;; ++i) {
        const std::string handle = HandleOf(std::to_string(i % 10));
        if (!store->Put("o", handle, SmallStateFile(5 + i % 2), seconds(60)).ok()) _exit(1);
      }
    }
    usleep(20'000 + 7'000 * round);
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
    const auto store = Open();
    const std::vector<StoredState> states = store->List("o").value();
    for (const StoredState& state : states) {
      EXPECT_TRUE(store->Get("o", state.handle).ok()) << state.handle;
    }
  }
  EXPECT_EQ(metrics_.Value("damaged_total"), 0);
  EXPECT_GT(metrics_.Value("hits_total"), 0);
}

TEST_F(DirectoryStoreTest, ADiskThatFailsIsUnavailable) {
  const auto store = Open();
  std::ofstream(Root() + "/owner-6f") << "in the way";
  EXPECT_TRUE(absl::IsUnavailable(store->Put("o", HandleOf("a"), file_, seconds(60)).status()));
  EXPECT_EQ(metrics_.Value("failures_total{operation=\"put\"}"), 1);
  EXPECT_TRUE(absl::IsNotFound(store->Get("o", HandleOf("a")).status()));
}

TEST_F(DirectoryStoreTest, NeedsADirectory) {
  const std::string file = directory_.Write("file", "");
  const auto store = OpenDirectoryStore(file, 1 << 20, metrics_.metrics());
  EXPECT_FALSE(store.ok());
}

}  // namespace
}  // namespace hippodrome::directory_store_test
