// Lines of a text, packed with gzip or not, one after the other.
#ifndef HIPPODROME_SERVER_BATCHES_LINE_READER_H_
#define HIPPODROME_SERVER_BATCHES_LINE_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

struct InputLine {
  std::string text;       // without its end
  bool too_long = false;  // then `text` is empty
  bool ended = false;     // by '\n'; the last line of a file need not be
};

// Takes memory for one line and a buffer, however long the text. Not thread-safe.
class LineReader {
 public:
  // Of the file `path`, or of standard input: "-". Lines of more than `most_bytes` are too long.
  // Errors: kNotFound, with the path.
  static absl::StatusOr<std::unique_ptr<LineReader>> Open(const std::string& path,
                                                          int64_t most_bytes);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // False behind the last line. Errors: kInvalidArgument for gzip data that is broken or ends
  // early, and kInternal with the system's reason.
  absl::StatusOr<bool> Next(InputLine& line);
  // Where the next line begins, in the unpacked text.
  int64_t position() const { return position_; }

  // Leaves the lines to be read that begin in [size * index / count, size * (index + 1) / count) of
  // the unpacked text of `size` bytes: those of all `count` shares are all lines, each once.
  // REQUIRES: nothing was read; a file.
  absl::Status TakeShare(int64_t index, int64_t count);

  // How far it is, as bytes of what there is to read; total is 0 where nobody knows.
  struct Progress {
    int64_t done = 0;
    int64_t total = 0;
  };
  Progress progress() const;

 private:
  struct File;
  LineReader(std::string path, int64_t most_bytes, std::unique_ptr<File> file);
  // Fills the buffer, which was used up. False at the end.
  absl::StatusOr<bool> Fill();
  absl::Status Failure() const;
  absl::StatusOr<int64_t> UnpackedSize();
  absl::Status Seek(int64_t position);

  const std::string path_;
  const int64_t most_bytes_;
  std::unique_ptr<File> file_;
  std::vector<char> buffer_;
  size_t next_ = 0, filled_ = 0;  // of the buffer
  int64_t position_ = 0;
  int64_t begin_ = 0;
  int64_t end_ = INT64_MAX;  // lines that begin here are of others
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHES_LINE_READER_H_
