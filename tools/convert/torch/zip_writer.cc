#include "tools/convert/torch/zip_writer.h"

#include <zlib.h>

#include "engine/base/status.h"
#include "tools/convert/byte_order.h"

namespace hippodrome {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kVersion = 45;          // with ZIP64
constexpr uint64_t kFirstDay = 33;         // 1 January 1980, where zip's calendar begins
constexpr uint64_t kInZip64 = 0xffffffff;  // the value is in the ZIP64 field

uint64_t Crc32(std::span<const std::byte> data) {
  return crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(data.data()), data.size());
}

// What an entry's header has in common with its item of the directory: version .. length of the
// extra fields.
std::string CommonHeader(const std::string& name, uint64_t crc, size_t extra) {
  return LittleEndian(kVersion, 2) + LittleEndian(0, 2) + LittleEndian(0, 2) + LittleEndian(0, 2) +
         LittleEndian(kFirstDay, 2) + LittleEndian(crc, 4) + LittleEndian(kInZip64, 4) +
         LittleEndian(kInZip64, 4) + LittleEndian(name.size(), 2) + LittleEndian(extra, 2);
}

// The ZIP64 field of these values, 8 bytes each.
std::string Zip64Field(std::initializer_list<uint64_t> values) {
  std::string field = LittleEndian(1, 2) + LittleEndian(8 * values.size(), 2);
  for (const uint64_t value : values) field += LittleEndian(value, 8);
  return field;
}

// A field that ends at a multiple of kAlignment, when it begins at `offset`.
std::string Padding(uint64_t offset) {
  constexpr uint64_t kHead = 4;
  const uint64_t zeros = (kAlignment - (offset + kHead) % kAlignment) % kAlignment;
  return "FB" + LittleEndian(zeros, 2) + std::string(zeros, '\0');
}

}  // namespace

absl::StatusOr<std::unique_ptr<ZipWriter>> ZipWriter::Create(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<PartialFile> file, PartialFile::Create(path));
  return std::unique_ptr<ZipWriter>(new ZipWriter(std::move(file)));
}

absl::Status ZipWriter::Add(const std::string& name, std::span<const std::byte> data) {
  constexpr uint64_t kHeaderBytes = 30;
  const uint64_t offset = file_->size();
  const uint64_t crc = Crc32(data);
  std::string extra = Zip64Field({data.size(), data.size()});
  extra += Padding(offset + kHeaderBytes + name.size() + extra.size());
  HIPPODROME_RETURN_IF_ERROR(file_->Append(LittleEndian(0x04034b50, 4) +
                                           CommonHeader(name, crc, extra.size()) + name + extra));
  HIPPODROME_RETURN_IF_ERROR(file_->Append(data));
  const std::string sizes = Zip64Field({data.size(), data.size(), offset});
  directory_ += LittleEndian(0x02014b50, 4) + LittleEndian(kVersion, 2) +
                CommonHeader(name, crc, sizes.size()) + LittleEndian(0, 2) + LittleEndian(0, 2) +
                LittleEndian(0, 2) + LittleEndian(0, 4) + LittleEndian(kInZip64, 4) + name + sizes;
  ++entries_;
  return absl::OkStatus();
}

absl::Status ZipWriter::Finish() {
  const uint64_t begin = file_->size();
  const uint64_t end = begin + directory_.size();
  const std::string counts = LittleEndian(entries_, 8) + LittleEndian(entries_, 8) +
                             LittleEndian(directory_.size(), 8) + LittleEndian(begin, 8);
  const std::string end64 = LittleEndian(0x06064b50, 4) + LittleEndian(44, 8) +
                            LittleEndian(kVersion, 2) + LittleEndian(kVersion, 2) +
                            LittleEndian(0, 4) + LittleEndian(0, 4) + counts;
  const std::string locator =
      LittleEndian(0x07064b50, 4) + LittleEndian(0, 4) + LittleEndian(end, 8) + LittleEndian(1, 4);
  const std::string last = LittleEndian(0x06054b50, 4) + LittleEndian(0, 4) +
                           LittleEndian(0xffff, 2) + LittleEndian(0xffff, 2) +
                           LittleEndian(kInZip64, 4) + LittleEndian(kInZip64, 4) +
                           LittleEndian(0, 2);
  HIPPODROME_RETURN_IF_ERROR(file_->Append(directory_ + end64 + locator + last));
  return file_->Finish();
}

}  // namespace hippodrome
