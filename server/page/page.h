// The page at GET /, where people try the models: one file without anything from elsewhere.
#ifndef HIPPODROME_SERVER_PAGE_PAGE_H_
#define HIPPODROME_SERVER_PAGE_PAGE_H_

#include <string>

#include "server/http/http_types.h"

namespace hippodrome {

// It says nothing about this server, and learns everything from the other routes, as any client.
// Its Content-Security-Policy lets browsers run its own script and style, by their hashes, and
// connect to this server alone. Thread-safe.
class Page {
 public:
  // Joins the sources of this folder, which are in the program, and hashes them.
  Page();

  // The page, or 304 where the client has it already.
  HttpReply Answer(const HttpRequest& request) const;

 private:
  std::string body_;
  std::string policy_;
  std::string tag_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_PAGE_PAGE_H_
