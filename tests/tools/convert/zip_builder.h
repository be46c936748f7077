// Writes zip archives byte by byte, wrong ones included.
#ifndef HIPPODROME_TESTS_TOOLS_CONVERT_ZIP_BUILDER_H_
#define HIPPODROME_TESTS_TOOLS_CONVERT_ZIP_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hippodrome {

class ZipBuilder {
 public:
  struct Entry {
    std::string name;
    std::string data;          // as it lies in the file
    uint16_t method = 0;       // 8: deflated
    uint64_t size = 0;         // claimed, of the unpacked data
    uint64_t packed_size = 0;  // claimed, of the data in the file
  };

  // A stored entry that claims its true size.
  ZipBuilder& Add(const std::string& name, const std::string& data);
  ZipBuilder& Add(Entry entry);
  // The archive. Sizes of 2^32 and more are written as ZIP64 fields.
  std::string Build() const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TOOLS_CONVERT_ZIP_BUILDER_H_
