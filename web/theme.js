// Before the page is drawn: the theme that was chosen.  Not a module, as these
// run later.

try {
  document.documentElement.dataset.theme
    = JSON.parse(localStorage.getItem('nginx-llm-settings')).theme || '';
} catch {
  // nothing is kept: as the system has it
}
