#include "tools/convert/torch/zip_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <filesystem>
#include <vector>

#include "tests/testing/temporary_directory.h"

namespace hippodrome::zip_writer_test {
namespace {

using testing::ElementsAre;

class ZipWriterTest : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  std::string path_ = directory_.File("archive");
};

// What libzip reads, checksums included.
std::vector<std::pair<std::string, std::string>> Entries(const std::string& path) {
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code);
  EXPECT_NE(archive, nullptr) << code;
  std::vector<std::pair<std::string, std::string>> entries;
  if (archive == nullptr) return entries;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive, 0); ++i) {
    zip_stat_t stat;
    EXPECT_EQ(zip_stat_index(archive, static_cast<zip_uint64_t>(i), 0, &stat), 0);
    EXPECT_EQ(stat.comp_method, ZIP_CM_STORE);
    std::string content(stat.size, '\0');
    zip_file_t* file = zip_fopen_index(archive, static_cast<zip_uint64_t>(i), 0);
    EXPECT_EQ(zip_fread(file, content.data(), content.size()),
              static_cast<zip_int64_t>(content.size()));
    char more = 0;
    EXPECT_EQ(zip_fread(file, &more, 1), 0) << zip_file_strerror(file);  // compares the checksum
    zip_fclose(file);
    entries.emplace_back(stat.name, content);
  }
  zip_discard(archive);
  return entries;
}

TEST_F(ZipWriterTest, WritesWhatOthersRead) {
  const std::string large(100'000, 'x');
  auto zip = ZipWriter::Create(path_).value();
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"a", "first"}, {"folder/empty", ""}, {"folder/large", large}}) {
    ASSERT_TRUE(zip->Add(name, text).ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(zip->Finish().ok());
  EXPECT_THAT(Entries(path_), ElementsAre(std::pair("a", "first"), std::pair("folder/empty", ""),
                                          std::pair("folder/large", large)));
}

TEST_F(ZipWriterTest, DataBeginAtMultiplesOf64Bytes) {
  auto zip = ZipWriter::Create(path_).value();
  for (int i = 0; i < 70; ++i) {
    ASSERT_TRUE(zip->Add(std::string(1 + i, 'n'), "<data" + std::string(i, '.')).ok());
  }
  ASSERT_TRUE(zip->Finish().ok());
  const std::string bytes = FileContent(path_);
  int found = 0;
  for (size_t at = bytes.find("<data"); at != std::string::npos; at = bytes.find("<data", at + 1)) {
    EXPECT_EQ(at % 64, 0u);
    ++found;
  }
  EXPECT_EQ(found, 70);
  EXPECT_EQ(Entries(path_).size(), 70u);
}

}  // namespace
}  // namespace hippodrome::zip_writer_test
