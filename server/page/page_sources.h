// The sources of the page, which the build puts into the program (embed.cmake).
#ifndef HIPPODROME_SERVER_PAGE_PAGE_SOURCES_H_
#define HIPPODROME_SERVER_PAGE_PAGE_SOURCES_H_

#include <string_view>

namespace hippodrome {

extern const std::string_view kPageHtml;    // page.html, with places for the other two
extern const std::string_view kPageStyle;   // page.css
extern const std::string_view kPageScript;  // the .js files, one after the other

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_PAGE_PAGE_SOURCES_H_
