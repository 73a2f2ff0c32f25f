// Light, dark, or as the system has it. The choice is this browser's and goes nowhere.

const KEY = "laboro-theme";
const CHOICES = ["auto", "light", "dark"];
const SIGNS = { auto: "◐", light: "☀", dark: "☾" };

export function dress(button) {
  let choice = CHOICES.includes(localStorage.getItem(KEY)) ? localStorage.getItem(KEY) : "auto";
  const show = () => {
    document.documentElement.dataset.theme = choice;
    button.textContent = SIGNS[choice];
    button.title = `colours: ${choice}`;
  };
  button.addEventListener("click", () => {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
    localStorage.setItem(KEY, choice);
    show();
  });
  show();
}
