"use strict";
// Moments in the reader's zone.
for (const time of document.querySelectorAll("time")) {
  time.title = time.dateTime;
  time.textContent = new Date(time.dateTime).toLocaleString();
}
