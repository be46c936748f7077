#include "tests/tools/convert/zip_builder.h"

#include "tools/convert/byte_order.h"

namespace hippodrome {
namespace {

uint32_t Crc32(const std::string& data) {
  uint32_t crc = 0xffffffffu;
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
  }
  return ~crc;
}

bool NeedsZip64(const ZipBuilder::Entry& entry) {
  return entry.size >= 0xffffffffu || entry.packed_size >= 0xffffffffu;
}

// What local and central headers have in common: version needed .. extra field's length.
std::string CommonHeader(const ZipBuilder::Entry& entry) {
  const bool zip64 = NeedsZip64(entry);
  const uint64_t packed = zip64 ? 0xffffffffu : entry.packed_size;
  const uint64_t size = zip64 ? 0xffffffffu : entry.size;
  return LittleEndian(zip64 ? 45 : 20, 2) + LittleEndian(0, 2) + LittleEndian(entry.method, 2) +
         LittleEndian(0, 2) + LittleEndian(33, 2) + LittleEndian(Crc32(entry.data), 4) +
         LittleEndian(packed, 4) + LittleEndian(size, 4) + LittleEndian(entry.name.size(), 2) +
         LittleEndian(zip64 ? 20 : 0, 2);
}

std::string Extra(const ZipBuilder::Entry& entry) {
  if (!NeedsZip64(entry)) return "";
  return LittleEndian(1, 2) + LittleEndian(16, 2) + LittleEndian(entry.size, 8) +
         LittleEndian(entry.packed_size, 8);
}

}  // namespace

ZipBuilder& ZipBuilder::Add(const std::string& name, const std::string& data) {
  return Add({name, data, 0, data.size(), data.size()});
}

ZipBuilder& ZipBuilder::Add(Entry entry) {
  entries_.push_back(std::move(entry));
  return *this;
}

std::string ZipBuilder::Build() const {
  std::string file;
  std::string directory;
  for (const Entry& entry : entries_) {
    const uint64_t offset = file.size();
    const std::string common = CommonHeader(entry);
    file += LittleEndian(0x04034b50, 4) + common + entry.name + Extra(entry) + entry.data;
    directory += LittleEndian(0x02014b50, 4) + LittleEndian(45, 2) + common + LittleEndian(0, 2) +
                 LittleEndian(0, 2) + LittleEndian(0, 2) + LittleEndian(0, 4) +
                 LittleEndian(offset, 4) + entry.name + Extra(entry);
  }
  return file + directory + LittleEndian(0x06054b50, 4) + LittleEndian(0, 4) +
         LittleEndian(entries_.size(), 2) + LittleEndian(entries_.size(), 2) +
         LittleEndian(directory.size(), 4) + LittleEndian(file.size(), 4) + LittleEndian(0, 2);
}

}  // namespace hippodrome
