// Opens the dashboard in Chromium; prints the big number when it is there, and again when it has changed, and takes a screenshot.
const { chromium } = require('playwright-core')

const [url, screenshot] = process.argv.slice(2)
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync']
const NUMBER = '.header-line'

async function main() {
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS })
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 } })
  let refreshes = 0
  page.on('response', (response) => { if (response.url().includes('/api/v1/chart/data')) refreshes += 1 })
  try {
    await page.goto(`${url}/login/`, { timeout: 120000 })
    await page.fill('input[name="username"], #username', 'admin')
    await page.fill('input[name="password"], #password', 'admin')
    await page.press('input[name="password"], #password', 'Enter')
    await page.waitForURL((at) => !at.href.includes('/login'), { timeout: 120000 })
    await page.goto(`${url}/superset/dashboard/orders/`, { timeout: 120000 })
    await page.waitForSelector(NUMBER, { timeout: 120000 })
    const number = await page.innerText(NUMBER)
    console.log(JSON.stringify({ number, refreshes }))
    await page.waitForFunction(([at, before]) => document.querySelector(at)?.innerText !== before && document.querySelector(at),
      [NUMBER, number], { timeout: 120000 })
    while (refreshes < 6) await page.waitForResponse((response) => response.url().includes('/api/v1/chart/data'), { timeout: 60000 })
    await page.waitForTimeout(500)
    await page.screenshot({ path: screenshot })
    console.log(JSON.stringify({ number: await page.innerText(NUMBER), refreshes }))
  } catch (error) {
    await page.screenshot({ path: screenshot }).catch(() => {})
    console.log(JSON.stringify({ error: String(error).slice(0, 400), at: page.url() }))
    console.log(JSON.stringify({ error: 'ended' }))
  }
  await browser.close()
}

main()
