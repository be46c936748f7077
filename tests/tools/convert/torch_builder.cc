#include "tests/tools/convert/torch_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"
#include "tests/tools/convert/zip_builder.h"

namespace hippodrome {
namespace pickled {

std::string Text(const std::string& text) { return "X" + LittleEndian(text.size(), 4) + text; }

std::string Integer(int64_t value) {
  return "\x8a\x08" + LittleEndian(static_cast<uint64_t>(value), 8);
}

std::string Integers(const std::vector<int64_t>& values) {
  std::string result = "(";
  for (const int64_t value : values) result += Integer(value);
  return result + "t";
}

std::string Global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

std::string Call(const std::string& callable, const std::vector<std::string>& arguments) {
  std::string result = callable + "(";
  for (const std::string& argument : arguments) result += argument;
  return result + "tR";
}

std::string Dict(const std::vector<std::string>& items) {
  std::string result = Global("collections", "OrderedDict") + ")R(";
  for (const std::string& item : items) result += item;
  return result + "u";
}

std::string Storage(const std::string& type, const std::string& key, int64_t elements) {
  return "(" + Text("storage") + Global("torch", type) + Text(key) + Text("cpu") +
         Integer(elements) + "tQ";
}

std::string Tensor(const std::string& storage, int64_t offset, const std::vector<int64_t>& shape,
                   const std::vector<int64_t>& strides) {
  return Call(Global("torch._utils", "_rebuild_tensor_v2"),
              {storage, Integer(offset), Integers(shape), Integers(strides), "\x89", "}"});
}

std::string Whole(const std::string& value) { return "\x80\x02" + value + "."; }

}  // namespace pickled

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
