#include "tests/tools/convert/torch_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"
#include "tests/tools/convert/zip_builder.h"
#include "tools/convert/byte_order.h"

namespace hippodrome {
std::string Bytes(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::string ZipFile(const std::string& pickle, const std::vector<StorageBytes>& storages) {
  ZipBuilder zip;
  zip.Add("top/data.pkl", pickle);
  for (const StorageBytes& storage : storages) zip.Add("top/data/" + storage.key, storage.bytes);
  return zip.Build();
}

std::string LegacyFile(const std::string& pickle, const std::vector<StorageBytes>& storages) {
  using pickled::Whole;
  std::string keys = "](";
  std::string data;
  for (const StorageBytes& storage : storages) {
    keys += pickled::Text(storage.key);
    data += LittleEndian(storage.elements, 8) + storage.bytes;
  }
  return Whole(std::string("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12)) +
         Whole("M" + LittleEndian(1001, 2)) +
         Whole("}(" + pickled::Text("little_endian") + "\x88u") + pickle + Whole(keys + "e") + data;
}

std::string WriteTemporary(const std::string& name, const std::string& bytes) {
  // One for the program, so that programs beside each other do not meet.
  static const TemporaryDirectory directory;
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string prefix = std::string(test->test_suite_name()) + "_" + test->name() + "_";
  std::replace(prefix.begin(), prefix.end(), '/', '_');
  return directory.Write(prefix + name, bytes);
}

absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenBytes(const std::string& bytes) {
  return OpenCheckpoint(WriteTemporary("model.pt", bytes));
}

std::string OpenError(const std::string& bytes) {
  const auto source = OpenBytes(bytes);
  return source.ok() ? "OK" : Message(source.status());
}

std::vector<float> ReadAll(CheckpointSource& source, size_t index) {
  std::vector<float> values(source.tensors()[index].elements);
  const absl::Status status = source.Read(index, 0, values);
  EXPECT_TRUE(status.ok()) << Message(status);
  return values;
}

}  // namespace hippodrome
